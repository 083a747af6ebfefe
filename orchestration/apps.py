"""The engine as a Django application."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class OrchestrationConfig(AppConfig):
    """Finds every application's workflows, and checks them."""

    name = "orchestration"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Load the `workflow` module of each application; make the rows each agent needs."""
        from . import applications, canary, checks, policies, roles  # noqa: F401 - registers checks

        autodiscover_modules("workflow")
        canary.declare()
        post_migrate.connect(policies.ensure, sender=self)
        post_migrate.connect(roles.ensure, sender=self)
        post_migrate.connect(applications.ensure_consumers, sender=self)
