"""The pages of the login after the password: the second factor."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from orders.rate_limit import Limit
from orders.shop.views.redirect import next_path, see_other

from . import second_factor, sessions
from .door import visit
from .forms import Code, Password, SetUp

NEW_SECRET = "second_factor_secret"  # noqa: S105 - where the session has it until its device is set up
PASSWORDS = Limit("staff-password", most=10, seconds=600)
View = Callable[[HttpRequest], HttpResponse]


def page(view: View) -> View:
    """Make a view one of these pages: never cached, its fields in no report."""
    limited = require_http_methods(["GET", "HEAD", "POST"])(view)
    return never_cache(sensitive_post_parameters()(limited))


def for_who_is_in(view: View) -> View:
    """Ask those for the login, or for the second factor, who are not in."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request)
        if visit(request).half_in:
            return see_other(reverse("second_factor_code", query={"next": request.get_full_path()}))
        return redirect_to_login(request.get_full_path())

    return guarded


@page
def code(request: HttpRequest) -> HttpResponse:
    """Show the second factor after the password."""
    user = visit(request).half_in
    if user is None:
        return see_other(_onward(request))
    if not second_factor.devices(user):
        return see_other(reverse("second_factor_set_up", query={"next": _onward(request)}))
    form = Code(request.POST or None)
    if request.method != "POST":
        return _shown(request, "code", form)
    if over := second_factor.may_try(user):
        return _over(request, "code", form, over)
    if form.is_valid():
        if device := second_factor.check(request, user, form.cleaned_data["code"]):
            sessions.show_factor(request, device)
            return see_other(_onward(request))
        form.add_error("code", ValidationError(WRONG, code="wrong"))
    return _shown(request, "code", form)


WRONG = "This code is wrong, or was used already. Wait for the next one."


@page
def set_up(request: HttpRequest) -> HttpResponse:
    """Set up a second factor, or another device for it."""
    user = _person(request)
    if user is None:
        return redirect_to_login(request.get_full_path())
    replaces = bool(second_factor.devices(user))
    if replaces and not request.user.is_authenticated:
        return see_other(reverse("second_factor_code", query={"next": _onward(request)}))
    secret = request.session.setdefault(NEW_SECRET, second_factor.new_secret())
    typed = request.POST if request.method == "POST" else None
    form: forms.Form = (
        Code(typed) if sessions.is_fresh(request) and not replaces else SetUp(typed, user=user)
    )
    context = {
        "picture": second_factor.picture(user, secret),
        "typed": second_factor.typed(secret),
        "replaces": replaces,
    }
    if typed is None:
        return _shown(request, "set_up", form, **context)
    if over := second_factor.may_try(user):
        return _over(request, "set_up", form, over, **context)
    if form.is_valid():
        if device := second_factor.set_up(user, secret, form.cleaned_data["code"]):
            del request.session[NEW_SECRET]
            second_factor.record(user, user, "Second factor set up.")
            sessions.show_factor(request, device)
            return _recovery_codes(request, user)
        form.add_error("code", ValidationError(WRONG, code="wrong"))
    return _shown(request, "set_up", form, **context)


@page
@for_who_is_in
def own(request: HttpRequest) -> HttpResponse:
    """Show whether the user's second factor is on; make new recovery codes, or turn it off."""
    user = cast("User", request.user)
    form = Password(request.POST or None, user=user)
    context = {
        "is_on": bool(second_factor.devices(user)),
        "left": second_factor.recovery_codes_left(user),
    }
    if request.method != "POST":
        return _shown(request, "second_factor", form, **context)
    if not PASSWORDS.allows(str(user.pk)):
        return _over(request, "second_factor", form, PASSWORDS, **context)
    if not form.is_valid() or not context["is_on"]:
        return _shown(request, "second_factor", form, **context)
    if request.POST.get("act") == "codes":
        second_factor.record(user, user, "New recovery codes made.")
        return _recovery_codes(request, user)
    if not settings.SECOND_FACTOR and request.POST.get("act") == "remove":
        second_factor.remove(user)
        second_factor.record(user, user, "Second factor turned off.")
        sessions.forget_factor(request)
    return see_other(reverse("second_factor"))


def _recovery_codes(request: HttpRequest, user: User) -> HttpResponse:
    context = {"codes": second_factor.new_recovery_codes(user), "next": _onward(request)}
    return render(request, "staff/recovery_codes.html", {**context, "person": user})


def _person(request: HttpRequest) -> User | None:
    """Return who is in, or half in."""
    return request.user if request.user.is_authenticated else visit(request).half_in


def _onward(request: HttpRequest) -> str:
    return next_path(request) or settings.LOGIN_REDIRECT_URL


def _shown(request: HttpRequest, name: str, form: forms.Form, **context: Any) -> HttpResponse:
    """Show a page of these with its form: 422 with errors."""
    context |= {
        "form": form,
        "next": next_path(request),
        "person": _person(request),
        "required": settings.SECOND_FACTOR,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.errors else HTTPStatus.OK
    return render(request, f"staff/{name}.html", context, status=status)


def _over(
    request: HttpRequest, name: str, form: forms.Form, over: Limit, **context: Any
) -> HttpResponse:
    """Show it where it was tried too often: 429, without a look at what was typed."""
    unbound = type(form)(user=form.user) if isinstance(form, Password) else type(form)()
    response = _shown(request, name, unbound, **context, problem=over.refusal_text)
    response.status_code = HTTPStatus.TOO_MANY_REQUESTS
    response["Retry-After"] = str(over.seconds)
    return response
