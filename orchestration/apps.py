"""The engine as a Django application."""

import sys

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules

SUPERVISOR = "supervisor"  # the command


class OrchestrationConfig(AppConfig):
    """Finds every application's workflows, and checks them; a supervisor needs none of that."""

    name = "orchestration"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Load what the applications declare, unless this process is a supervisor (P3)."""
        if sys.argv[1:2] != [SUPERVISOR]:
            self.load()

    def load(self) -> None:
        """Load the `workflow` module of each application; make the rows each agent needs."""
        from . import applications, canary, checks, roles  # noqa: F401 - registers checks
        from .housekeeping import rows

        autodiscover_modules("workflow")
        canary.declare()
        post_migrate.connect(rows.ensure, sender=self)
        post_migrate.connect(roles.ensure, sender=self)
        post_migrate.connect(applications.ensure_consumers, sender=self)
