"""The durable messages: between applications and the engine (P18, P27), and those that failed."""

from dataclasses import replace
from functools import partial

from django.db import models

from .. import conf
from ..database.lane import Lane, Problem
from .fields import DatabaseNow, FollowingUp, Prioritized, StoredJSON, state_field
from .task import Task

# What all messages from applications have in common.
inbox_lane = partial(
    Lane,
    due_at="retry_at",
    error="reason",
    problem="problem",
    refused_at="refused_at",
    closed_at="closed_at",
    group="workflow",
)
SUBMISSIONS = inbox_lane(
    name="submission",
    model="Submission",
    label="workflow || ' ' || reference",
    order=("-priority", "turn", "id"),
    failing="{}: submissions fail",
    unknown="{}: submissions of an unknown workflow",
    refused="{}: a submission was refused",
)
STATUSES = Lane(
    name="status",
    model="StatusMessage",
    due_at="send_after",
    error="reason",
    refused_at="refused_at",
    closed_at="closed_at",
    group="reply_to",
    label="'status message ' || number || ' to ' || reply_to",
    task="task_id",
    failing="{}: its receiver fails on status messages",
    refused="{}: a status message was set aside",
)
# The same messages, sent to applications by push.
PUSHES = replace(
    STATUSES,
    failing="",  # an alert about the application says so
    leased=True,
    wait_s=conf.NOTIFICATION_WAIT_S,
    wait_cap_s=conf.NOTIFICATION_WAIT_CAP_S,
    max_age_s=conf.NOTIFICATION_MAX_AGE_S,
    least_tries=conf.MIN_PUSH_TRIES,
)
INBOX_LETTERS = Lane(
    name="inbox",
    model="DeadLetter",
    due_at="retry_at",
    group="queue",
    label="'message of ' || queue",
)


class InboxMessage(models.Model):
    """A message from an application, which a submission process carries out.

    One that fails waits until `retry_at`. One that its application refuses, or that an operator
    closes, is set aside: it has a `refused_at`. A closed one is the record of that decision.
    """

    workflow = models.CharField(max_length=60)
    reference = models.CharField(max_length=100)
    reply_to = models.CharField(max_length=60, blank=True)
    created_at = models.DateTimeField(db_default=DatabaseNow())
    tries = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Number of failures."
    )
    retry_at = models.DateTimeField(null=True, help_text="When it is retried.")
    refused_at = models.DateTimeField(null=True, help_text="When it was refused.")
    closed_at = models.DateTimeField(null=True, help_text="When an operator closed it.")
    problem = state_field(Problem, blank=True, default="", db_default="")
    reason = models.TextField(blank=True, default="", db_default="")

    class Meta:
        abstract = True


class Submission(Prioritized, FollowingUp, InboxMessage):
    """A message that describes one task; gone once it is a task."""

    data = StoredJSON()
    owner_application = models.CharField(max_length=60, blank=True, default="", db_default="")
    turn = models.BigIntegerField(
        default=0, db_default=0, help_text="Its position within its priority."
    )

    class Meta:
        permissions = [("requeue", "Can retry and close dead letters")]
        constraints = [
            # posting twice is posting once, as long as the first is not consumed; after that, the
            # task itself is the record that refuses a twin
            models.UniqueConstraint(
                fields=["workflow", "reference"],
                condition=SUBMISSIONS.open,
                name="submission_once",
            ),
        ]
        indexes = [
            # the submission process's queue, in order: fresh ones, then retries
            models.Index(
                models.F("retry_at").asc(nulls_first=True),
                models.F("priority").desc(),
                "turn",
                "id",
                name="submission_due",
                condition=SUBMISSIONS.open,
            ),
            # of the fresh ones, one key's: its last turn
            models.Index(
                fields=["priority", "fairness_key", "turn"],
                name="submission_key",
                condition=SUBMISSIONS.fresh,
            ),
            # of the fresh ones, those that have waited the longest
            models.Index(
                fields=["id"],
                name="submission_age",
                condition=SUBMISSIONS.fresh,
            ),
            # dead letters: for lists
            models.Index(fields=["id"], name="submission_aside", condition=SUBMISSIONS.failed),
            # and for the alerts that they keep open
            models.Index(
                fields=["workflow", "problem", "tries"],
                name="submission_unresolved",
                condition=SUBMISSIONS.failed,
            ),
            # what may be removed, oldest first
            models.Index(
                fields=["closed_at"],
                name="submission_closed",
                condition=SUBMISSIONS.closed,
            ),
            # the result of one that is not a task
            models.Index(
                fields=["workflow", "reference", "refused_at"],
                name="submission_set_aside",
                condition=SUBMISSIONS.set_aside,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} {self.reference}"


class StatusKind(models.TextChoices):
    """What a status message reports."""

    RECEIVED = "received", "Request received"
    COMPLETED = "completed", "Completed"
    STEP = "step", "Step changed (only for applications that ask for it)"
    ACTION_NEEDED = "action_needed", "Rejected: the input must be changed"
    FAILED = "failed", "Failed: an operator was alerted"
    RESUMED = "resumed", "Resumed after a failure"
    UNDOING = "undoing", "Being undone"
    UNDONE = "undone", "Undone: no effect is left"
    UNDOING_PART = "undoing_part", "Some of its steps are being undone"
    REFUSED = "refused", "A request about it was refused"
    REMINDER = "reminder", "A result is awaited still"
    AMENDED = "amended", "The input was changed"
    SET_ASIDE = "set_aside", "Not accepted: waiting for an operator"
    CLOSED = "closed", "Not taken: an operator decided so"


class StatusMessage(models.Model):
    """A message to an application's private response queue, numbered from 1 per task.

    Written in the transaction that changes the task; deleted when the application has taken it.
    One about a submission that is not a task has the number 0. `progress` is for the owner.
    """

    reply_to = models.CharField(max_length=60)
    workflow = models.CharField(max_length=60, default="", db_default="")
    reference = models.CharField(max_length=100, default="", db_default="")
    task = models.ForeignKey(
        Task,
        models.CASCADE,
        related_name="status_messages",
        null=True,
        db_index=False,
        db_constraint=False,
        help_text="Found by status_number_once; the audit looks for tasks that are gone.",
    )
    number = models.PositiveIntegerField()
    kind = state_field(StatusKind, max_length=20)
    detail = StoredJSON(default=dict)
    progress = StoredJSON(null=True, help_text="The progress of the task.")
    created_at = models.DateTimeField(db_default=DatabaseNow())
    tries = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Attempts to deliver it."
    )
    send_after = models.DateTimeField(null=True, help_text="When it may be delivered again.")
    refused_at = models.DateTimeField(
        null=True, help_text="When its receiver refused it, or delivery was given up."
    )
    closed_at = models.DateTimeField(null=True, help_text="When an operator closed it.")
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            # each number once to each receiver
            models.UniqueConstraint(
                fields=["task", "number", "reply_to"], name="status_number_once"
            ),
        ]
        indexes = [
            # one application's queue, in order
            models.Index(fields=["reply_to", "id"], name="status_queue", condition=STATUSES.open),
            # what its receiver here is handed: fresh ones, then retries
            models.Index(
                "reply_to",
                models.F("send_after").asc(nulls_first=True),
                "id",
                name="status_due",
                condition=STATUSES.open,
            ),
            # dead letters: for lists
            models.Index(fields=["id"], name="status_aside", condition=STATUSES.failed),
            # and for the alerts that they keep open
            models.Index(
                fields=["reply_to", "refused_at", "tries"],
                name="status_unresolved",
                condition=STATUSES.failed,
            ),
            # what may be removed, oldest first
            models.Index(fields=["closed_at"], name="status_closed", condition=STATUSES.closed),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.number} to {self.reply_to}"


class DeadLetter(models.Model):
    """A message from an inbox on Redis that failed by itself, as it came.

    It returns to the inbox of its queue at `retry_at`; without one it waits for a person.
    """

    queue = models.CharField(max_length=100)
    body = models.TextField(help_text="As received; bytes that are not UTF-8 are escaped.")
    reason = models.TextField()
    tries = models.PositiveSmallIntegerField(help_text="Number of failures.")
    retry_at = models.DateTimeField(null=True, help_text="Empty: waits for an operator.")
    step = models.BigIntegerField(
        null=True, help_text="Of a reply that waits for a locked row: the step it answers."
    )
    created_at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        indexes = [
            # whether a reply waits: its attempt does not expire meanwhile
            models.Index(
                fields=["step"], name="dead_letter_step", condition=models.Q(step__isnull=False)
            ),
            # what returns to its inbox, in order
            models.Index(
                fields=["retry_at"],
                name="dead_letter_due",
                condition=INBOX_LETTERS.open,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.created_at}"
