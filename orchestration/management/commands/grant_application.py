"""`manage.py grant_application`: gives an application's own database role what it needs of the engine."""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from orchestration.applications import database_rights


class Command(BaseCommand):
    """Can be run again at any time; after each deploy that adds functions or workflows, say."""

    help = (
        "Have a database role post submissions and requests of an application, by functions; it gets no "
        "right on any table of the engine, and acts on the tasks of that application's workflows alone. "
        "Example: `manage.py grant_application shop_web shop`."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the role, the application, and workflows that no application keeps."""
        parser.add_argument("role", help="the name of the database role, as it logs in")
        parser.add_argument(
            "application",
            nargs="?",
            default="",
            help="the application that it speaks for; by default the only one that keeps workflows",
        )
        parser.add_argument(
            "--workflow",
            action="append",
            default=[],
            metavar="NAME",
            help="a workflow that no application keeps, whose tasks are this one's; may be repeated",
        )

    def handle(
        self, *_: Any, role: str, application: str, workflow: Sequence[str], **__: Any
    ) -> None:
        """Grant it, and print each statement."""
        try:
            done = database_rights.grant(role, application, workflow)
        except (database_rights.NotGranted, DatabaseError) as error:
            raise CommandError(str(error)) from error
        for statement in done:
            self.stdout.write(statement)
