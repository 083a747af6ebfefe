"""`manage.py grant_application`: gives an application's own database role what it needs of the engine."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from orchestration.applications import database_rights


class Command(BaseCommand):
    """Can be run again at any time; after each deploy that adds functions, say."""

    help = (
        "Have a database role post submissions and requests, by functions; it gets no right on any "
        "table of the engine. Example: `manage.py grant_application shop`."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the role."""
        parser.add_argument("role", help="the name of the database role")

    def handle(self, *_: Any, role: str, **__: Any) -> None:
        """Grant it, and print each statement."""
        try:
            done = database_rights.grant(role)
        except (database_rights.TableRightsRemain, DatabaseError) as error:
            raise CommandError(str(error)) from error
        for statement in done:
            self.stdout.write(statement)
