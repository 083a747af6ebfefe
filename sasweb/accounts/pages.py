"""The pages of second factors: allauth's, with the limits of this project, and a history of what was done."""

from http import HTTPStatus
from typing import Any, cast

from allauth.account.decorators import reauthentication_required
from allauth.account.views import ReauthenticateView
from allauth.mfa.base import views as mfa
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView, ViewRecoveryCodesView
from allauth.mfa.totp.internal.flows import activate_totp
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.views import (
    AddWebAuthnView,
    LoginWebAuthnView,
    ReauthenticateWebAuthnView,
    RemoveWebAuthnView,
)
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.generic import FormView

from orders.rate_limit import Limit
from orders.shop.views.redirect import next_path, see_other
from sasweb.staff import sessions

from . import second_factor, session_list
from .forms import AppForm, CodeAgainForm, CodeForm, PasskeyForm, PasswordAgainForm

PASSWORDS = Limit("password-again", most=10, seconds=600)
PASSKEYS = Limit("passkey", most=120, seconds=600)  # from one address
page = method_decorator([never_cache, sensitive_post_parameters()], name="dispatch")


def _user(request: HttpRequest) -> User:
    return cast("User", request.user)


class Refusing:
    """Answers a form with something wrong by 422, and a try too many by 429, without a look at it."""

    request: HttpRequest
    problem = ""

    def over(self) -> Limit | None:
        """Count a try; return the limit that it is over."""
        return None

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Look at what was sent only within the limit."""
        if over := self.over():
            self.problem = over.refusal_text
            request.method = "GET"
            response = self.get(request, *args, **kwargs)  # type: ignore[attr-defined]
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response["Retry-After"] = str(over.seconds)
            return cast("HttpResponse", response)
        return cast("HttpResponse", super().post(request, *args, **kwargs))  # type: ignore[misc]

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show what is wrong."""
        response = super().form_invalid(form)  # type: ignore[misc]
        response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return cast("HttpResponse", response)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add what the templates show."""
        context = super().get_context_data(**kwargs)  # type: ignore[misc]
        return {**context, "problem": self.problem, "next": next_path(self.request)}


class Changing(Refusing):
    """Counts tries of who is signed in."""

    def over(self) -> Limit | None:
        """Count a try, as at a login."""
        user = _user(self.request)
        return second_factor.may_try(user, works_here=sessions.works_here(user))


def _changed(request: HttpRequest, words: str) -> None:
    """Note what was done, for this session and, of staff, in the user's history; other sessions end."""
    user = _user(request)
    if sessions.works_here(user):
        second_factor.record(user, user, words)
    sessions.renew_factor(request, user)
    session_list.end(user, but=request)


@page
class Code(Refusing, mfa.AuthenticateView):
    """The second factor after the password."""

    form_class = CodeForm

    def over(self) -> Limit | None:
        """Count a try of the account, from everywhere."""
        user = self.stage.login.user
        return second_factor.may_try(user, works_here=sessions.works_here(user))

    def form_valid(self, form: Any) -> HttpResponse:
        """Go on with the login, to the page that was asked for last."""
        login = self.stage.login
        login.redirect_url = next_path(self.request) or login.redirect_url
        return see_other(super().form_valid(form)["Location"])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Show empty forms where what was sent was not looked at."""
        if self.problem:
            self._build_forms()
        kinds = second_factor.of(self.stage.login.user).values()
        has_passkey = Authenticator.Type.WEBAUTHN in kinds
        return {**super().get_context_data(**kwargs), "has_passkey": has_passkey}


@page
class Own(mfa.IndexView):
    """What is set up."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add whether a second factor is required, and how many recovery codes are left."""
        user = _user(self.request)
        context = super().get_context_data(**kwargs)
        return {
            **context,
            "required": settings.SECOND_FACTOR and sessions.works_here(user),
            "left": second_factor.recovery_codes_left(user),
            "next": next_path(self.request),
        }


@page
@method_decorator(reauthentication_required(app="allauth.mfa"), name="dispatch")
class App(Changing, ActivateTOTPView):
    """Set up an app, or another one in its place."""

    form_class = AppForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show the page also where an app is set up: allauth has it removed first."""
        return FormView.dispatch(self, request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add whether it replaces one, and the secret as it is typed."""
        context = super().get_context_data(**kwargs)
        secret = context["form"].secret
        typed = " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))
        kinds = second_factor.of(_user(self.request)).values()
        return {**context, "typed": typed, "replaces": Authenticator.Type.TOTP in kinds}

    def form_valid(self, form: Any) -> HttpResponse:
        """Make it the only app."""
        user = _user(self.request)
        with transaction.atomic():
            User.objects.select_for_update().get(pk=user.pk)  # one at a time
            Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).delete()
            _made, codes = activate_totp(self.request, form)
            _changed(self.request, "Second factor set up.")
        return see_other(_after_adding(self.request, with_codes=bool(codes)))


@page
class NoApp(Refusing, DeactivateTOTPView):
    """Remove the app."""

    def form_valid(self, form: Any) -> HttpResponse:
        """Remove it."""
        response = super().form_valid(form)
        _changed(self.request, "Second factor removed.")
        return cast("HttpResponse", response)


@page
class Passkey(Changing, AddWebAuthnView):
    """Add a passkey."""

    form_class = PasskeyForm

    def form_valid(self, form: Any) -> HttpResponse:
        """Keep it."""
        super().form_valid(form)
        _changed(self.request, "Passkey added.")
        return see_other(_after_adding(self.request, with_codes=self.did_generate_recovery_codes))


@page
class NoPasskey(Refusing, RemoveWebAuthnView):
    """Remove a passkey."""

    def form_valid(self, form: Any) -> HttpResponse:
        """Remove it, unless it is the last factor where one is required."""
        from allauth.mfa.adapter import get_adapter

        if not get_adapter().can_delete_authenticator(self.get_object()):
            messages.error(self.request, _("Set up another second factor first: one is required."))
            return see_other(reverse("mfa_index"))
        response = super().form_valid(form)
        _changed(self.request, "Second factor removed.")
        return cast("HttpResponse", response)


@page
class Codes(ViewRecoveryCodesView):
    """The recovery codes: shown once, and how many are left."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Show the codes, and keep only digests of them."""
        context = super().get_context_data(**kwargs)
        user = _user(self.request)
        row = Authenticator.objects.get(user=user, type=Authenticator.Type.RECOVERY_CODES)
        codes = second_factor.keep_digests(row) if context["can_view_codes"] else []
        return {
            **context,
            "unused_codes": codes,
            "left": second_factor.recovery_codes_left(user),
            "next": next_path(self.request) or reverse("mfa_index"),
        }


@page
class NewCodes(Refusing, GenerateRecoveryCodesView):
    """Make new recovery codes."""

    def form_valid(self, form: Any) -> HttpResponse:
        """Make them; the old ones are worth nothing."""
        response = super().form_valid(form)
        _changed(self.request, "New recovery codes made.")
        return cast("HttpResponse", response)


@page
class PasswordAgain(Refusing, ReauthenticateView):
    """The password once more."""

    def get_form_class(self) -> type[PasswordAgainForm]:
        """Return the form with the shop's sentences."""
        return PasswordAgainForm

    def over(self) -> Limit | None:
        """Count a try."""
        return None if PASSWORDS.allows(str(_user(self.request).pk)) else PASSWORDS


@page
class CodeAgain(Changing, mfa.ReauthenticateView):
    """The second factor once more."""

    def get_form_class(self) -> type[CodeAgainForm]:
        """Return the form with the limits of this project."""
        return CodeAgainForm


@page
class PasskeyAgain(Changing, ReauthenticateWebAuthnView):
    """A passkey once more."""


@page
class PasskeyLogin(LoginWebAuthnView):
    """Sign in by a passkey alone."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Look at what is sent, and begin a session for it, only within the limit of an address."""
        if PASSKEYS.allows_address(request):
            return cast("HttpResponseBase", super().dispatch(request, *args, **kwargs))
        messages.error(request, PASSKEYS.refusal_text)
        return see_other(reverse("account_login"))


def _after_adding(request: HttpRequest, *, with_codes: bool) -> str:
    name = "mfa_view_recovery_codes" if with_codes else "mfa_index"
    onward = next_path(request)
    return reverse(name, query={"next": onward} if onward else None)
