"""Pages for a forgotten password: ask for a letter, and set a new one by its link.

The answer is the same whether an address has an account or not.
"""

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from allauth.account.signals import password_reset
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordResetConfirmView
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.generic import FormView

from orders.rate_limit import Limit
from orders.shop import account_letters
from orders.shop.account_forms import ForgottenForm, ResetPasswordForm
from orders.shop.account_letters import Letter
from orders.shop.accounts import find_account
from orders.shop.typed import form_page, typed

if TYPE_CHECKING:  # generic for the type checker only
    from django.utils.functional import _StrOrPromise as Words

    AskView = FormView[ForgottenForm]
else:
    AskView = FormView

ASKS = Limit("forgotten", most=10, seconds=3600)  # from one address of the network


def customers(email: str) -> list[User]:
    """Return the customer's account of an e-mail address: it is named by it."""
    known = find_account(email)
    return [known] if known and known.is_active else []


@method_decorator([never_cache, form_page], "dispatch")
class Forgotten(AskView):
    """Ask for a letter."""

    form_class = ForgottenForm
    template_name = "account/forgotten.html"
    letter = Letter(template="account/forgotten_letter.txt", route="shop:reset", users=customers)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Look at what was typed only within the limit."""
        if not ASKS.allows_address(request):
            context = {"form": self.form_class(), "problem": ASKS.refusal_text}
            response = self.render_to_response(context, status=HTTPStatus.TOO_MANY_REQUESTS)
            response["Retry-After"] = str(ASKS.seconds)
            return response
        return super().post(request, *args, **kwargs)

    def get_initial(self) -> dict[str, Any]:
        """Return what was typed, where the form is shown again."""
        return dict(typed(self.request))

    def form_valid(self, form: ForgottenForm) -> HttpResponse:
        """Say that a letter is on its way, if there is an account."""
        account_letters.send_later(self.letter, form.cleaned_data["email"])
        return self.render_to_response({"sent": True})

    def form_invalid(self, form: ForgottenForm) -> HttpResponse:
        """Show what is wrong."""
        return self.render_to_response(
            self.get_context_data(form=form), status=HTTPStatus.UNPROCESSABLE_ENTITY
        )


@method_decorator(form_page, "dispatch")
class Reset(PasswordResetConfirmView):
    """Set a new password by the link of a letter, once: all sessions of the account end."""

    form_class = ResetPasswordForm  # type: ignore[assignment] # it is one for customers
    template_name = "account/reset.html"
    success_url = reverse_lazy("shop:sign_in")
    done: "Words" = _(
        "Your password is changed, and you are signed out everywhere. Sign in with the new one."
    )

    def form_valid(self, form: Any) -> HttpResponse:
        """Set it, and lead to the sign-in."""
        response = super().form_valid(form)
        password_reset.send(sender=User, request=self.request, user=self.user)
        messages.success(self.request, self.done)
        return response

    def form_invalid(self, form: Form) -> HttpResponse:
        """Show what is wrong."""
        return self.render_to_response(
            self.get_context_data(form=form), status=HTTPStatus.UNPROCESSABLE_ENTITY
        )
