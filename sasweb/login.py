"""The one login of those who work here; it opens customers' accounts, too, so it is not for guessing."""

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orders import devices
from orders.rate_limit import Limit

# Wrong passwords are counted per name by axes; this holds for one address and all names.
LOG_INS = Limit("log-in", most=120, seconds=600)


class Login(LoginView):
    """Enter by name and password, not too often from one address or under one name."""

    template_name = "registration/login.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Look at the password only within the limit."""
        over = None
        if not LOG_INS.allows_address(request):
            over = LOG_INS
        elif not devices.may_try(request, request.POST.get("username", "")):
            over = devices.TRIES
        if over:
            response = render(request, "lockout.html", {"excuse": over.refusal_text}, status=429)
            response["Retry-After"] = str(over.seconds)
            return response
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Log in; remember the browser."""
        response = super().form_valid(form)
        devices.remember(response, form.get_user().get_username())
        return response
