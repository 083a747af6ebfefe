"""Whether the database has the migrations of the code that is about to run on it."""

import pkgutil
from collections.abc import Sequence
from importlib.util import find_spec

import psycopg2
from django.apps import apps
from django.core.management import CommandError
from django.db import DatabaseError
from django.db.migrations.loader import MigrationLoader

from . import sql

NO_SUCH_TABLE = "42P01"
APPLIED = "SELECT app, name FROM django_migrations WHERE app = ANY(%(apps)s)"


def require(*labels: str) -> None:
    """Raise CommandError if the database lacks migrations of these applications, of all if none is named.

    Migrations that the code does not know are of a later release, and do no harm. If the database does not
    answer, or this role may not ask, the process starts and finds out by itself.
    """
    known = _known(labels or tuple(app.label for app in apps.get_app_configs()))
    try:
        applied = {
            (app, name) for app, name in sql.run(APPLIED, {"apps": [app for app, _ in known]})
        }
    except DatabaseError as error:
        cause = error.__cause__
        if not isinstance(cause, psycopg2.Error) or cause.pgcode != NO_SUCH_TABLE:
            return
        applied = set()
    if missing := [f"{app}.{name}" for app, name in known if (app, name) not in applied]:
        raise CommandError(
            f"This release needs migrations that the database does not have ({', '.join(missing)}): run "
            "`manage.py migrate` first. Processes of the release before go on meanwhile."
        )


def _known(labels: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the migrations of applications by their files' names, without loading any.

    By the rules of Django's loader: which module has them, and which of its files are none.
    """
    return [
        (label, module.name)
        for label in labels
        for folder in _folders(label)
        for module in pkgutil.iter_modules([folder])
        if not module.ispkg and module.name[0] not in "_~"
    ]


def _folders(label: str) -> Sequence[str]:
    """Return where an application's migrations are; nothing if it has none."""
    name, _ = MigrationLoader.migrations_module(label)  # None: MIGRATION_MODULES turns them off
    spec = find_spec(name) if name else None
    return spec.submodule_search_locations or [] if spec else []
