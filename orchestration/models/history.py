"""What happened: attempts and events. Rows are only ever added (a trigger refuses changes)."""

from django.db import models
from django.db.models import Q

from ..states import Outcome
from .fields import DatabaseNow, StoredJSON, one_of, state_field
from .incident import Incident
from .operation import Operation
from .step import Step
from .task import Task


class Attempt(models.Model):
    """One try of a step, written once, when it ended."""

    step = models.ForeignKey(
        Step,
        models.CASCADE,
        related_name="attempts",
        db_index=False,
        db_constraint=False,
        help_text="Found by attempt_once; the audit looks for steps that are gone.",
    )
    number = models.PositiveIntegerField()
    generation = models.PositiveIntegerField()
    scheduler = models.CharField(max_length=80, help_text="The instance that dispatched it.")
    agent = models.CharField(max_length=80, blank=True, help_text="The instance that replied.")
    dispatched_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, help_text="When the agent began.")
    ended_at = models.DateTimeField(db_default=DatabaseNow())
    outcome = state_field(Outcome)
    tries = models.PositiveIntegerField(default=0, help_text="Calls made inside the agent.")
    error_code = models.CharField(max_length=100, blank=True)
    error_message = models.TextField(blank=True)

    class Meta:
        constraints = [
            # an attempt ends once: the database's own fence against a second reply
            models.UniqueConstraint(fields=["step", "number"], name="attempt_once"),
            one_of("outcome", Outcome, "attempt_outcome_known"),
        ]
        indexes = [
            # the roll-ups: what ended since they last looked; and the what-if of the policies, which
            # takes a few from every hour of a week
            models.Index(fields=["ended_at"], name="attempt_by_end"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of step {self.step_id}: {self.outcome}"


class AttemptEvidence(models.Model):
    """Why an attempt failed: the traceback of an exception, and what the service answered.

    Only of failures that have either: an attempt that succeeds writes no row. Bounded, and without
    credentials, by the agent; what is personal is hidden when it is shown.
    """

    step = models.ForeignKey(
        Step,
        models.CASCADE,
        related_name="evidence",
        db_index=False,
        db_constraint=False,
        help_text="Found by evidence_once.",
    )
    number = models.PositiveIntegerField(help_text="Of the attempt.")
    traceback = models.TextField(blank=True, help_text="The last frames.")
    status = models.PositiveSmallIntegerField(default=0, help_text="Of an HTTP answer; 0: none.")
    answer = models.TextField(blank=True, help_text="What the service answered last.")
    cut = models.BooleanField(default=False, help_text="The answer was longer.")

    class Meta:
        constraints = [
            # the page of a task, and the removal of tasks, find it by the step
            models.UniqueConstraint(fields=["step", "number"], name="evidence_once"),
        ]

    def __str__(self) -> str:
        return f"evidence of attempt {self.number} of step {self.step_id}"


class EventKind(models.TextChoices):
    """What an event says. A step that just works leaves none: its attempt is its history."""

    RETRY = "retry", "Retry scheduled"
    ERROR = "error", "Stopped in error"
    RESUBMITTED = "resubmitted", "Resubmitted"
    REPLY_REFUSED = "refused", "Late or repeated reply refused"
    LATE = "late", "Late effect detected"
    OVERDUE = "overdue", "Overdue"
    EXCUSED = "excused", "Failed while the breaker was open: not counted"
    WAITS = "waits", "Extended wait started"
    BY_HAND = "by_hand", "Done by hand"
    REPORTED = "reported", "Result reported"
    UNDO = "undo", "Undo requested"
    UNDO_REQUESTED = "undo_asked", "Undo requested by the supervisor"
    UNDO_REFUSED = "no_undo", "Undo refused"
    SETTLED = "settled", "Confirmed that nothing was done"
    HELD = "held", "Held"
    RELEASED = "released", "Released"
    PRIORITY = "priority", "Priority changed"
    PROBE = "probe", "Immediate probe requested"
    ACKNOWLEDGED = "acknowledged", "Alert acknowledged"
    BULK = "bulk", "Bulk operation changed"
    INCIDENT = "incident", "Incident changed"
    CAUSE = "cause", "Incident changed automatically"
    RETRIED = "retried", "Dead letter retried"
    CLOSED = "closed", "Dead letter or alert closed"
    STARTED = "started", "Started by hand"
    AMENDED = "amended", "Input changed"


# what people do to tasks; the rest happens by itself
ACTS = (
    EventKind.RESUBMITTED,
    EventKind.BY_HAND,
    EventKind.UNDO,
    EventKind.UNDO_REFUSED,
    EventKind.HELD,
    EventKind.RELEASED,
    EventKind.PRIORITY,
    EventKind.PROBE,
    EventKind.ACKNOWLEDGED,
    EventKind.BULK,
    EventKind.INCIDENT,
    EventKind.RETRIED,
    EventKind.CLOSED,
    EventKind.STARTED,
    EventKind.AMENDED,
)


class Event(models.Model):
    """A line of history: what happened, who or what did it, and why; of a task, as a rule.

    What people do to an agent, an alert or a submission has no task: `detail` names what it was done
    to. What they do to a bulk operation has none either, and `operation`; what that did to tasks has
    both. What is done about an incident, or happens to it by itself, has `incident`.
    """

    task = models.ForeignKey(Task, models.CASCADE, null=True, related_name="events")
    step = models.ForeignKey(Step, models.CASCADE, null=True, related_name="events")
    operation = models.ForeignKey(
        Operation, models.CASCADE, null=True, related_name="events", db_index=False
    )
    incident = models.ForeignKey(
        Incident, models.CASCADE, null=True, related_name="events", db_index=False
    )
    kind = state_field(EventKind, max_length=12)
    actor = models.CharField(max_length=150, help_text="A user name, or an instance id.")
    reason = models.TextField(blank=True)
    detail = StoredJSON(default=dict, db_default={}, help_text="Before and after, as data.")
    attempt = models.PositiveIntegerField(null=True)
    at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        indexes = [
            models.Index(fields=["-at"], name="event_recent"),
            # what people did to an operation, apart from what it did to tasks
            models.Index(
                fields=["operation", "task", "id"],
                name="event_of_operation",
                condition=Q(operation__isnull=False),
            ),
            models.Index(
                fields=["incident", "id"],
                name="event_of_incident",
                condition=Q(incident__isnull=False),
            ),
            # what people did last: few among the many that retries and errors leave
            models.Index(
                fields=["-at"],
                name="event_by_people",
                condition=Q(kind__in=ACTS),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.actor}"

    @property
    def what(self) -> str:
        """Return what it says, in words."""
        recorded = self.kind == EventKind.BY_HAND and "report" in self.detail
        return "Result recorded" if recorded else EventKind(self.kind).label

    @property
    def typed(self) -> bool:
        """Return whether its reason may be a person's own words."""
        return self.kind in (*ACTS, EventKind.SETTLED)
