"""`manage.py reset_second_factor NAME`: for the administrator whom no other one can help."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from sasweb.accounts import second_factor, session_list


class Command(BaseCommand):
    """Removes a user's second factor; the history of the user says so."""

    help = (
        "Reset the second factor of a user who has lost it, as an administrator does in the admin."
    )

    def add_arguments(self, parser: Any) -> None:
        """Add the user."""
        parser.add_argument("username")

    def handle(self, *_: Any, username: str, **_options: Any) -> None:
        """Remove it, and record that."""
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"No user is named {username!r}.")
        if not second_factor.devices(user):
            raise CommandError(f"{username} has no second factor.")
        with transaction.atomic():
            second_factor.remove(user)
            session_list.end(user)
            second_factor.record(user, user, "Second factor reset by a command.")
        self.stdout.write(f"The second factor of {username} is reset.")
