"""The state store by the pattern's own names: a view of the database, to look at (P20)."""

from django.db import models


class ProcessState(models.TextChoices):
    """The pattern's four words for where a record stands."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    PROCESSED = "Processed"
    ERROR = "Error"


class StateStore(models.Model):
    """One record for each step, as the pattern describes it; `state` is the engine's own word."""

    id = models.BigIntegerField(primary_key=True, help_text="The step's.")
    order_id = models.CharField("OrderID", max_length=100, help_text="The reference of its task.")
    workflow = models.CharField(max_length=60)
    step = models.CharField(max_length=60)
    direction = models.CharField(max_length=4)
    agent = models.CharField(max_length=60, help_text="Empty: a scheduler computes the step.")
    locked_by = models.CharField(  # noqa: DJ001 - the pattern's null
        "LockedBy", max_length=80, null=True
    )
    complete_by = models.DateTimeField("CompleteBy", null=True)
    process_state = models.CharField("ProcessState", max_length=10, choices=ProcessState)
    failure_count = models.PositiveIntegerField("FailureCount")
    attempt = models.PositiveIntegerField(help_text="How often it was begun.")
    state = models.CharField(
        max_length=10, help_text="The state of the step, as the engine names it."
    )
    task_state = models.CharField(max_length=10)
    task_id = models.UUIDField()

    class Meta:
        managed = False
        db_table = "orchestration_statestore"
        default_permissions = ("view",)
        verbose_name = verbose_name_plural = "state store"

    def __str__(self) -> str:
        return f"{self.step} of {self.order_id}"
