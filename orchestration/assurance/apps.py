"""Assurance as a Django application: audit, doctor, archive, removal of what is old, reconciliation."""

from django.apps import AppConfig

from ..messaging import queues

QUEUE = "audit"


class AssuranceConfig(AppConfig):
    """Declares the audit's queue. Its table is made by the engine's migrations."""

    name = "orchestration.assurance"
    label = "orchestration_assurance"
    verbose_name = "orchestration: assurance"

    def ready(self) -> None:
        """Declare the audit's queue, so that workers serve it."""
        queues.serve(QUEUE, "orchestration.assurance.audit.job.run")
