"""What applications ask for about their tasks (P27), and what services report of what they accepted."""

from django.db import models

from .fields import StoredJSON, state_field
from .inbox import SUBMISSIONS, InboxMessage, inbox_lane
from .retention import removal_key

REQUESTS = inbox_lane(
    name="request",
    model="TaskRequest",
    label="what || ' of ' || workflow || ' ' || reference",
    done_at="done_at",
    failing="{}: requests about tasks fail",
    unknown="{}: requests about tasks fail",
    refused="{}: a request about a task was refused by its application",
)


def waits_for_person(request: str, closed: str = "w.closed_at IS NULL") -> str:
    """Return the condition that a request, by its alias, waits for a submission that is set aside.

    It does until a person has that tried again or closes it (`closed` is when it counts as not closed):
    not beside a task, or after the removal of one, which that submission can never be.
    """
    named = f"{request}.workflow", f"{request}.reference"
    set_aside = SUBMISSIONS.where(SUBMISSIONS.set_aside, "w")
    return f"""(EXISTS (SELECT FROM orchestration_submission w WHERE w.workflow = {named[0]}
        AND w.reference = {named[1]} AND {set_aside} AND {closed})
    AND NOT EXISTS (SELECT FROM orchestration_task t
        WHERE t.workflow = {named[0]} AND t.reference = {named[1]})
    AND NOT EXISTS (SELECT FROM orchestration_removedtask d WHERE d.key = {removal_key(*named)}))"""  # noqa: S608 - put together from constants


# The refusal of a report by the service's own id as long as no step has been accepted under it, and for how
# long it is carried out all the same once one is: webhooks overtake the answers to requests.
UNKNOWN_ID = "UNKNOWN_ID"
KEPT_FOR_S = 3600.0


class RequestedAct(models.TextChoices):
    """What can be asked for."""

    UNDO = "undo", "Undo the task"
    UNDO_PART = "undo_part", "Undo some steps, and all that come after them"
    RESUBMIT = "resubmit", "Retry a failed step"
    COMPLETE = "complete", "Report the result of a step that awaits it"
    AMEND = "amend", "Change the input for steps to come"


class TaskRequest(InboxMessage):
    """A message by which an application asks for something about its task.

    Kept once it is done: the same request posted again is the same request. A report by an `agent` and its
    service's own id gets its workflow, reference and step as its step is known.
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
    agent = models.CharField(
        max_length=60, blank=True, default="", db_default="", help_text="Whose service reports it."
    )
    external_id = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="What the service calls what it reports about.",
    )

    class Meta:
        indexes = [
            # what is to be carried out, in order
            models.Index(
                models.F("retry_at").asc(nulls_first=True),
                "id",
                name="request_due",
                condition=REQUESTS.open,
            ),
            # of those, the ones about one task
            models.Index(
                fields=["workflow", "reference", "id"], name="request_line", condition=REQUESTS.open
            ),
            # what may be removed, oldest first
            models.Index(
                fields=["done_at"], name="request_done", condition=models.Q(done_at__isnull=False)
            ),
            models.Index(fields=["closed_at"], name="request_closed", condition=REQUESTS.closed),
            # reports that no step was found for: a step that is accepted under the id takes them
            models.Index(
                fields=["agent", "external_id"],
                name="request_kept",
                condition=models.Q(refusal=UNKNOWN_ID),
            ),
            # what a service has reported, by time: for pages and metrics
            models.Index(
                fields=["agent", "created_at"],
                name="request_reported",
                condition=~models.Q(agent=""),
            ),
            # dead letters: for lists
            models.Index(fields=["id"], name="request_aside", condition=REQUESTS.failed),
            # and for the alerts that they keep open
            models.Index(
                fields=["workflow", "problem", "tries"],
                name="request_unresolved",
                condition=REQUESTS.failed,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.what} of {self.workflow} {self.reference}"
