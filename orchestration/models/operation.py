"""Bulk acts as durable rows: what was asked for, by whom, and what became of each item."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from .fields import DatabaseNow, StoredJSON, one_of, state_field
from .incident import Incident
from .step import Step
from .task import Task


class Act(models.TextChoices):
    """What an operation does to each of its items."""

    RESUBMIT = "resubmit", "Resubmit"  # the failed steps are tried again
    UNDO = "undo", "Undo"  # the tasks are taken back
    HOLD = "hold", "Hold"  # the tasks wait
    RELEASE = "release", "Release"  # the tasks go on
    BY_HAND = "by_hand", "Mark as done"  # the failed steps are taken as done


class OperationState(models.TextChoices):
    """Where an operation stands."""

    DRAFT = "draft", "Dry run"  # nothing is frozen, nothing happens
    APPROVAL = "approval", "Awaiting approval"  # a second person must agree
    WAITING = "waiting", "Starting"  # it can still be taken back
    RUNNING = "running", "Running"  # items are sent at its rate, and followed to their end
    PAUSED = "paused", "Paused"  # none is sent; those sent are followed
    ABORTED = "aborted", "Aborted"  # none is sent any more; those sent are followed
    ENDED = "ended", "Ended"  # every item has its end


class ItemState(models.TextChoices):
    """Where one item of an operation stands."""

    WAITING = "waiting", "Waiting"  # its turn has not come
    SENT = "sent", "In progress"  # the act was done; what it comes to is not known yet
    FIXED = "fixed", "Fixed"  # the step is processed; the task is undone, held or released
    AGAIN = "again", "Failed again (same cause)"
    OTHER = "other", "Failed (other cause)"
    SKIPPED = "skipped", "Skipped"  # nothing was done, or nothing came of it; the reason says why


# Every legal move; triggers made from these tables refuse the rest.
OPERATION_MOVES: dict[OperationState, dict[OperationState, str]] = {
    OperationState.DRAFT: {
        OperationState.WAITING: "it is confirmed",
        OperationState.APPROVAL: "it is confirmed, and too large for one person",
    },
    OperationState.APPROVAL: {
        OperationState.WAITING: "a second person approves it",
        OperationState.ABORTED: "it is taken back, or refused",
    },
    OperationState.WAITING: {
        OperationState.RUNNING: "its first seconds are over",
        OperationState.ABORTED: "it is taken back",
    },
    OperationState.RUNNING: {
        OperationState.PAUSED: "a person pauses it",
        OperationState.ABORTED: "a person aborts it",
        OperationState.ENDED: "every item has its end",
    },
    OperationState.PAUSED: {
        OperationState.RUNNING: "a person resumes it",
        OperationState.ABORTED: "a person aborts it",
        OperationState.ENDED: "every item has its end",
    },
    OperationState.ABORTED: {},
    OperationState.ENDED: {},
}

ITEM_MOVES: dict[ItemState, dict[ItemState, str]] = {
    ItemState.WAITING: {
        ItemState.SENT: "its turn comes",
        ItemState.SKIPPED: "it has changed since it was seen, or the operation is aborted",
    },
    ItemState.SENT: {
        ItemState.FIXED: "its step is processed, its task undone, held or released",
        ItemState.AGAIN: "its step is in error again, for the same cause",
        ItemState.OTHER: "its step is in error, or its undo failed, for another cause",
        ItemState.SKIPPED: "the act was refused, or its task was undone meanwhile",
    },
    ItemState.FIXED: {},
    ItemState.AGAIN: {},
    ItemState.OTHER: {},
    ItemState.SKIPPED: {},
}

OPEN_ITEMS = (ItemState.WAITING, ItemState.SENT)
CLOSED = (OperationState.ABORTED, OperationState.ENDED)


class Operation(models.Model):
    """One bulk act on a selection of tasks.

    A draft is a dry run. With its confirmation its items are frozen: each with the state in which
    it was seen, so that what changed meanwhile is skipped.
    """

    act = state_field(Act)
    state = state_field(OperationState, default=OperationState.DRAFT)
    selection = StoredJSON(
        help_text="As given: {tasks: [id, …]}, {query: the list's address} or {incident: id}."
    )
    incident = models.ForeignKey(
        Incident, models.SET_NULL, null=True, blank=True, related_name="operations",
        help_text="The cause that was selected, if one was.",
    )  # fmt: skip
    sample = models.PositiveIntegerField(
        null=True, blank=True, help_text="At most this number of the selected items; empty: all."
    )
    forced = models.BooleanField(
        default=False, db_default=False,
        help_text="Also tasks with irreversible effects: these remain, and the rest is undone.",
    )  # fmt: skip
    result = StoredJSON(null=True, blank=True, help_text="What steps done by hand gave.")
    reason = models.CharField(max_length=500, blank=True)
    rate = models.FloatField(default=20.0, help_text="Items sent per second.")
    actor = models.CharField(max_length=150, help_text="Who asked for it.")
    actor_user = models.BigIntegerField(
        null=True, help_text="The id of that user; empty if it was asked for in a shell."
    )
    created_at = models.DateTimeField(db_default=DatabaseNow())
    starts_at = models.DateTimeField(null=True, help_text="Until then it can be taken back whole.")
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True, help_text="When its last item had its end.")

    preview = StoredJSON(
        default=dict,
        db_default={},
        help_text="The dry run: {eligible, skipped by reason, calls, money, forced, standing, followed}.",
    )
    approval = models.CharField(
        max_length=200, blank=True, help_text="Why a second person must agree, if so."
    )
    approved_by = models.CharField(max_length=150, blank=True)
    approved_by_user = models.BigIntegerField(null=True, help_text="The id of that user.")
    approved_at = models.DateTimeField(null=True)

    items = models.PositiveIntegerField(
        default=0, help_text="Their number when the selection was frozen."
    )
    removed_items = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Of them, those that were removed with their tasks."
    )
    waiting = models.PositiveIntegerField(default=0)
    sent = models.PositiveIntegerField(default=0)
    fixed = models.PositiveIntegerField(default=0)
    again = models.PositiveIntegerField(default=0)
    other = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    why = StoredJSON(
        default=dict, db_default={}, help_text="The commonest reasons for skipping, with counts."
    )
    money = StoredJSON(default=dict, help_text="What it moves, by currency, minor units.")

    tokens = models.FloatField(default=0.0, help_text="Items that the rate allows at `tokens_at`.")
    tokens_at = models.DateTimeField(null=True)
    checked_until = models.BigIntegerField(
        default=0, help_text="The last item looked at: the next look goes on from there."
    )

    class Meta:
        constraints = [
            one_of("act", Act, "operation_act_known"),
            one_of("state", OperationState, "operation_state_known"),
            models.CheckConstraint(
                condition=Q(rate__gt=0, rate__lte=1000),
                name="operation_rate",
                violation_error_message="The rate is more than 0 and at most 1,000 a second.",
            ),
            models.CheckConstraint(
                # nothing is begun without a word why
                condition=Q(state="draft") | ~Q(reason=""),
                name="operation_with_reason",
            ),
            models.CheckConstraint(
                condition=Q(forced=False) | Q(act="undo"), name="operation_forced_undo"
            ),
            models.CheckConstraint(
                # a second person is another person
                condition=Q(approved_by="") | ~Q(approved_by=F("actor")),
                name="operation_second_person",
            ),
            models.CheckConstraint(
                # with another account, under any name
                condition=Q(approved_by_user__isnull=True)
                | Q(actor_user__isnull=True)
                | ~Q(approved_by_user=F("actor_user")),
                name="operation_second_account",
            ),
            models.CheckConstraint(
                # what needs a second person goes nowhere without
                condition=Q(state__in=["draft", "approval", "aborted"])
                | Q(approval="")
                | ~Q(approved_by=""),
                name="operation_approved",
            ),
            models.CheckConstraint(
                condition=Q(state="ended", ended_at__isnull=False)
                | Q(state="aborted")
                | (~Q(state__in=["ended", "aborted"]) & Q(ended_at__isnull=True)),
                name="operation_ended_when_final",
            ),
        ]
        indexes = [
            # what the supervisor looks at with each sweep
            models.Index(
                fields=["id"],
                name="operation_open",
                condition=Q(ended_at__isnull=True) & ~Q(state="draft"),
            ),
            # dry runs that were not confirmed, to delete them
            models.Index(
                fields=["created_at"], name="operation_drafts", condition=Q(state="draft")
            ),
        ]

    def __str__(self) -> str:
        return f"operation {self.pk}: {self.get_act_display().lower()}, {self.items} items"

    @property
    def counts(self) -> dict[str, int]:
        """Return how many items there are in each state."""
        return {state.value: getattr(self, state.value) for state in ItemState}

    @property
    def is_open(self) -> bool:
        """Return whether an item may still change."""
        return self.ended_at is None and self.state != OperationState.DRAFT


class OperationItem(models.Model):
    """One step, or one task, of an operation: as it was seen, and what became of it."""

    operation = models.ForeignKey(
        Operation, models.CASCADE, related_name="item_set", db_index=False
    )
    task = models.ForeignKey(Task, models.CASCADE, related_name="operation_items")
    step = models.ForeignKey(
        Step, models.CASCADE, null=True, related_name="operation_items",
        help_text="Empty where the act is on the task as a whole.",
    )  # fmt: skip
    attempt = models.PositiveIntegerField(null=True, help_text="Of the step, as seen.")
    seen = models.CharField(max_length=10, help_text="The state of the step or task, as seen.")
    cause = models.CharField(max_length=300, blank=True, help_text="Why the step had failed.")
    stands = ArrayField(
        models.TextField(), default=list, db_default=[], blank=True,
        help_text="Steps that cannot be undone, as seen: a forced undo lets these stand, no other.",
    )  # fmt: skip
    change = StoredJSON(
        null=True,
        help_text="How a step is resubmitted, if not as it is: {request, nothing_done}.",
    )
    state = state_field(ItemState, default=ItemState.WAITING)
    reason = models.CharField(max_length=500, blank=True)
    sent_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            one_of("state", ItemState, "operation_item_state_known"),
            # two operations never have the same thing in hand; nor does one have it twice
            models.UniqueConstraint(
                fields=["step"],
                condition=Q(state__in=["waiting", "sent"], step__isnull=False),
                name="operation_item_step_once_open",
            ),
            models.UniqueConstraint(
                fields=["task"],
                condition=Q(state__in=["waiting", "sent"], step__isnull=True),
                name="operation_item_task_once_open",
            ),
            models.CheckConstraint(
                # what was passed over says why
                condition=~Q(state="skipped") | ~Q(reason=""),
                name="operation_item_skipped_why",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "sent"], ended_at__isnull=True)
                | Q(state__in=["fixed", "again", "other", "skipped"], ended_at__isnull=False),
                name="operation_item_ended",
            ),
        ]
        indexes = [
            # the next to be sent, those to follow, and the counts
            models.Index(fields=["operation", "state", "id"], name="operation_item_by_state"),
            # the page of an operation, in order
            models.Index(fields=["operation", "id"], name="operation_item_by_id"),
        ]

    def __str__(self) -> str:
        return f"{self.step_id or self.task_id}: {self.state}"
