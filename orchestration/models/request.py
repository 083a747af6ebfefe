"""What applications ask for about their tasks (P27): an undo, or that a failed step is tried again."""

from django.db import models
from django.db.models import Q

from .fields import StoredJSON, state_field
from .inbox import INBOX_ASIDE, InboxMessage
from .retention import removal_key

REQUEST_OPEN = Q(done_at__isnull=True, refused_at__isnull=True)


def waits_for_person(request: str, closed: str = "w.closed_at IS NULL") -> str:
    """Return the condition that a request, by its alias, waits for a submission that is set aside.

    It does until a person has that tried again or closes it (`closed` is when it counts as not closed):
    not beside a task, or after the removal of one, which that submission can never be.
    """
    named = f"{request}.workflow", f"{request}.reference"
    return f"""(EXISTS (SELECT FROM orchestration_submission w WHERE w.workflow = {named[0]}
        AND w.reference = {named[1]} AND w.refused_at IS NOT NULL AND {closed})
    AND NOT EXISTS (SELECT FROM orchestration_task t
        WHERE t.workflow = {named[0]} AND t.reference = {named[1]})
    AND NOT EXISTS (SELECT FROM orchestration_removedtask d WHERE d.key = {removal_key(*named)}))"""  # noqa: S608 - put together from constants


NEEDS_NO_PERSON = f"NOT {waits_for_person('r')}"


class RequestedAct(models.TextChoices):
    """What can be asked for."""

    UNDO = "undo", "Undo the task"
    RESUBMIT = "resubmit", "Retry a failed step"


class TaskRequest(InboxMessage):
    """A message by which an application asks for something about its task.

    Kept once it is done: the same request posted again is the same request.
    """

    request = models.UUIDField(unique=True, help_text="The application's own id for it.")
    what = state_field(RequestedAct)
    step = models.CharField(max_length=60, blank=True, default="")
    attempt = models.PositiveIntegerField(default=0, help_text="The one that was seen to fail.")
    amendment = StoredJSON(default=dict, help_text="What changes with it.")
    note = StoredJSON(null=True, help_text="For the application, when it is carried out.")
    actor = models.CharField(max_length=150)
    because = models.TextField(help_text="Why it is asked for.")
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
            # what may be removed, oldest first
            models.Index(
                fields=["done_at"], name="request_done", condition=Q(done_at__isnull=False)
            ),
            models.Index(
                fields=["closed_at"], name="request_closed", condition=Q(closed_at__isnull=False)
            ),
            # dead letters: for lists
            models.Index(fields=["id"], name="request_aside", condition=INBOX_ASIDE),
            # and for the alerts that they keep open
            models.Index(
                fields=["workflow", "problem", "tries"],
                name="request_unresolved",
                condition=INBOX_ASIDE,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.what} of {self.workflow} {self.reference}"
