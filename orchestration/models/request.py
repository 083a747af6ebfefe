"""What applications ask for about their tasks (P27): an undo, or that a failed step is tried again."""

from django.db import models
from django.db.models import Q

from .fields import DatabaseNow, state_field
from .inbox import Problem

# what fails, or was set aside, and is not closed: the dead letters
REQUEST_ASIDE = Q(Q(refused_at__isnull=False) | ~Q(problem=""), closed_at__isnull=True)
REQUEST_OPEN = Q(done_at__isnull=True, refused_at__isnull=True)


class Act(models.TextChoices):
    """What can be asked for."""

    UNDO = "undo", "Undo the task"
    RESUBMIT = "resubmit", "Try a failed step again"


class TaskRequest(models.Model):
    """A message by which an application asks for something about its task.

    Kept once it is done: the same request posted again is the same request. One that fails waits
    until `retry_at`; one that its application refuses is set aside, which `refused_at` says.
    """

    request = models.UUIDField(unique=True, help_text="The application's own id for it.")
    workflow = models.CharField(max_length=60)
    reference = models.CharField(max_length=100)
    what = state_field(Act)
    step = models.CharField(max_length=60, blank=True, default="")
    attempt = models.PositiveIntegerField(default=0, help_text="The one that was seen to fail.")
    amendment = models.JSONField(default=dict, help_text="What changes with it.")
    note = models.JSONField(null=True, help_text="For the application, when it is carried out.")
    actor = models.CharField(max_length=150)
    because = models.TextField(help_text="Why it is asked for.")
    reply_to = models.CharField(max_length=60, blank=True)
    created_at = models.DateTimeField(db_default=DatabaseNow())
    tries = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="How often it has failed."
    )
    retry_at = models.DateTimeField(null=True, help_text="When it is tried again.")
    refused_at = models.DateTimeField(null=True, help_text="When it was set aside.")
    closed_at = models.DateTimeField(
        null=True, help_text="When an operator decided that it is not carried out."
    )
    problem = state_field(Problem, blank=True, default="", db_default="")
    reason = models.TextField(blank=True, default="", db_default="")
    done_at = models.DateTimeField(null=True, help_text="When it was carried out, or refused.")
    refusal = models.CharField(max_length=40, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            # what is to be carried out, in order
            models.Index(
                models.F("retry_at").asc(nulls_first=True),
                "id",
                name="request_due",
                condition=REQUEST_OPEN,
            ),
            # of those, the ones about one task
            models.Index(
                fields=["workflow", "reference", "id"], name="request_line", condition=REQUEST_OPEN
            ),
            # dead letters: for lists
            models.Index(fields=["id"], name="request_aside", condition=REQUEST_ASIDE),
            # and for the alerts that they keep open
            models.Index(
                fields=["workflow", "problem", "tries"],
                name="request_suffering",
                condition=REQUEST_ASIDE,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.what} of {self.workflow} {self.reference}"
