"""`manage.py grant_shop ROLE`: grant the rights of a web process that serves the shop only."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connection, transaction
from django.db.models.options import Options
from psycopg2 import sql

from orders.lifecycle.message import APPLICATION, EMAIL_WORKFLOW

APPLICATIONS = ("orders", "sessions", "axes")  # the shop reads and writes their tables
WRITE = sql.SQL("SELECT, INSERT, UPDATE, DELETE")
ACCOUNTS = sql.SQL("SELECT, INSERT, UPDATE")  # customers create accounts and change passwords


class Command(BaseCommand):
    """Grants a role rights on the tables of the shop, sessions, sign-ins and accounts."""

    help = (
        "Grant a database role what a web process with SERVES=shop needs: of the shop's own tables, "
        "and of the engine, by `manage.py grant_application`. Run it again after each migration."
    )

    def add_arguments(self, parser: Any) -> None:
        """Add the role."""
        parser.add_argument("role", help="an existing role that owns no table")

    def handle(self, *_: Any, role: str, **_options: Any) -> None:
        """Grant all rights in one transaction."""
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                for table, rights in _rights():
                    _grant(cursor, role, table, rights)
                # its letters are a workflow of their own, of which nobody is sent word
                more = {"workflow": [EMAIL_WORKFLOW], "stdout": self.stdout}
                call_command("grant_application", role, APPLICATION, **more)
        except Error as problem:
            raise CommandError(str(problem).strip()) from problem


def _rights() -> "Iterator[tuple[Options[Any], sql.SQL]]":
    """Yield the tables, as model options, with their rights."""
    for name in APPLICATIONS:
        for model in apps.get_app_config(name).get_models():
            yield model._meta, WRITE  # noqa: SLF001 - public by Django's documentation
    yield get_user_model()._meta, ACCOUNTS  # noqa: SLF001 - as above


def _grant(cursor: Any, role: str, of: "Options[Any]", rights: sql.SQL) -> None:
    to = sql.Identifier(role)
    cursor.execute(sql.SQL("GRANT {} ON {} TO {}").format(rights, sql.Identifier(of.db_table), to))
    cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [of.db_table, of.pk.column])
    ((sequence,),) = cursor.fetchall()
    if sequence:  # already quoted if necessary
        cursor.execute(sql.SQL("GRANT USAGE ON SEQUENCE {} TO {}").format(sql.SQL(sequence), to))
