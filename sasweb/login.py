"""The one login of those who work here; it opens customers' accounts, too, so it is not for guessing."""

from typing import Any

from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orders.rate_limit import Limit

# Wrong passwords are counted per name by axes; this holds for one address and all names.
LOG_INS = Limit("log-in", most=120, seconds=600)


class Login(LoginView):
    """Enter by name and password, not too often from one address."""

    template_name = "registration/login.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Look at the password only within the limit."""
        if not LOG_INS.allows_address(request):
            response = render(request, "lockout.html", {"excuse": LOG_INS.refusal_text}, status=429)
            response["Retry-After"] = str(LOG_INS.seconds)
            return response
        return super().post(request, *args, **kwargs)
