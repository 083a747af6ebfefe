"""The engine as a Django application."""

import sys
from typing import Any

from django.apps import AppConfig
from django.core.management import CommandError
from django.db import connections
from django.db.backends.signals import connection_created
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.signals import post_migrate, pre_migrate
from django.utils.module_loading import autodiscover_modules

from .database import any_time, session
from .installation import defaults

SUPERVISOR = "supervisor"  # the command
# One initial set replaced all migrations before the first release. The first two names of both sets are the
# same; this is the third of the replaced set.
REPLACED = ("orchestration", "0003_trouble")


class OrchestrationConfig(AppConfig):
    """Loads and checks the workflows of all applications, except in a supervisor."""

    name = "orchestration"
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, app_name: str, app_module: Any) -> None:
        super().__init__(app_name, app_module)
        defaults.fill_in()  # before any module of the engine is loaded that reads settings

    def ready(self) -> None:
        """Load the applications' declarations, unless this process is a supervisor (P3)."""
        connection_created.connect(session.look, dispatch_uid="look at the session")
        connection_created.connect(any_time.read_any_time, dispatch_uid="read any time")
        if sys.argv[1:2] != [SUPERVISOR]:
            self.load()

    def load(self) -> None:
        """Load the `workflow` module of each application; connect the signals of migrations."""
        from . import checks  # noqa: F401 - registers the system checks
        from .applications import tokens
        from .housekeeping import agent_rows
        from .monitoring import canary
        from .people import roles

        autodiscover_modules("workflow")
        canary.declare()
        pre_migrate.connect(refuse_replaced_migrations, sender=self)
        post_migrate.connect(agent_rows.ensure, sender=self)
        post_migrate.connect(roles.ensure, sender=self)
        post_migrate.connect(tokens.ensure_consumers, sender=self)


def refuse_replaced_migrations(using: str, **_: Any) -> None:
    """Raise CommandError if the database was created by the replaced migrations.

    Otherwise `migrate` would treat such a database as almost up to date.
    """
    connection = connections[using]
    if REPLACED in MigrationRecorder(connection).applied_migrations():
        raise CommandError(
            f"The database {connection.settings_dict['NAME']} was made by migrations that were replaced "
            "before the first release. It cannot be upgraded, and nothing in it was changed. Create the "
            "database again; for the data of `make run`: `make clean`, which removes it."
        )
