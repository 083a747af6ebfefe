"""The one login of those who work here; it opens customers' accounts, too, so it is not for guessing."""

from http import HTTPStatus
from typing import Any

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login as LoginInProgress
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from orders import devices
from orders.rate_limit import Limit
from orders.shop.views.account import change_of_person
from orders.shop.views.errors import folder
from orders.shop.views.redirect import see_other

from .login_form import LoginForm
from .staff.door import visit

# Wrong passwords are counted per name by axes; this holds for one address and all names.
LOG_INS = Limit("staff-log-in", most=120, seconds=600)
NAMES = Limit("staff-name", most=devices.TRIES.most, seconds=devices.TRIES.seconds)
TEMPLATE = "staff/login.html"


class Login(LoginView):
    """Enter by name and password, not too often from one address or under one name."""

    template_name = TEMPLATE
    authentication_form = LoginForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Lead those who have to set up a second factor there."""
        if visit(request).half_in and request.method == "GET":
            return see_other(reverse("mfa_index", query=request.GET))
        return super().dispatch(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Look at the password only within the limit."""
        over = None
        if not LOG_INS.allows_address(request):
            over = LOG_INS
        elif not devices.may_try(request, request.POST.get("username", ""), NAMES):
            over = NAMES
        return over_limit(request, over) if over else super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Go on to the second factor, or log in; remember the browser."""
        user = form.get_user()
        change_of_person(self.request, user)
        name = user.get_username()
        login = LoginInProgress(user=user, redirect_url=self.get_success_url())
        response: HttpResponse = perform_password_login(self.request, {"username": name}, login)
        devices.remember(response, name)
        return response


def over_limit(request: HttpRequest, limit: Limit) -> HttpResponse:
    """Answer a try too many."""
    response = _lockout(request, limit.refusal_text)
    response["Retry-After"] = str(limit.seconds)
    return response


def locked_out(request: HttpRequest, *_: Any) -> HttpResponse:
    """Answer a try with a name that axes has locked for this address."""
    return _lockout(request, "")


def _lockout(request: HttpRequest, excuse: str) -> HttpResponse:
    template = f"{folder(request)}lockout.html"
    return render(request, template, {"excuse": excuse}, status=HTTPStatus.TOO_MANY_REQUESTS)
