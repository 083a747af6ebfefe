"""The shop's web process in the database role that it has where it serves the shop alone."""

from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection
from django.test import Client

ROLE = "shop_web"


def make_role() -> None:
    """Make the role in this transaction, as docs/run/install.md says; it goes with the transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")
    call_command("grant_shop", ROLE)


@contextmanager
def in_role():
    """Have what follows run with the rights of the role."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET SESSION AUTHORIZATION {ROLE}")  # as if it had logged in
    try:
        yield
    finally:
        if not connection.needs_rollback:  # then the role goes with what is rolled back
            with connection.cursor() as cursor:
                cursor.execute("RESET SESSION AUTHORIZATION")


class Visitor(Client):
    """A visitor's browser; the pages are made with the rights of the role."""

    def request(self, **request):
        with in_role():
            return super().request(**request)
