"""Forgotten passwords of staff: as those of customers, in the dashboard's dress.

The new password passes no second factor: that is asked for at the login as before.
"""

from django.contrib.auth.models import User
from django.urls import reverse_lazy

from orders.shop.account_letters import Letter
from orders.shop.views import forgotten

from .sessions import works_here


def staff(email: str) -> list[User]:
    """Return the staff accounts with this e-mail address."""
    users = User.objects.filter(email__iexact=email, is_active=True)
    return [user for user in users if works_here(user)]


class Forgotten(forgotten.Forgotten):
    """Ask for a letter."""

    template_name = "staff/forgotten.html"
    letter = Letter(
        template="staff/forgotten_letter.txt", route="staff_password_reset", users=staff
    )


class Reset(forgotten.Reset):
    """Set a new password by the link of a letter."""

    template_name = "staff/reset.html"
    success_url = reverse_lazy("login")
    done = "Your password is changed, and all your sessions have ended. Log in with the new one."
