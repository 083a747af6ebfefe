"""Tasks and their steps: the records the pattern describes (P20)."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from ..states import (
    LIVE_TASK_STATES,
    Direction,
    Outcome,
    StepState,
    TaskState,
)
from ..workflow import LONGEST_CONTACT, LONGEST_CURRENCY, LONGEST_LABEL, step_key
from .alert import Alert
from .fields import DatabaseNow, one_of, state_field, time_ordered_id
from .hold import Hold
from .incident import Incident


class Task(models.Model):
    """One unit of work from an application: here, the processing of one order."""

    id = models.UUIDField(primary_key=True, default=time_ordered_id, editable=False)
    workflow = models.CharField(max_length=60)
    reference = models.CharField(
        max_length=100, help_text="The application's own id for it: the pattern's OrderID."
    )
    state = state_field(TaskState, default=TaskState.PENDING)
    priority = models.SmallIntegerField(default=0, help_text="Higher goes first.")
    data = models.JSONField(help_text="The input that the application submitted.")
    reply_to = models.CharField(
        max_length=60, blank=True, help_text="The application's private response queue (P27)."
    )
    statuses = models.PositiveIntegerField(
        default=0, help_text="How many status messages were written: numbers rise by one."
    )
    tell_steps = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether its application wants to know of each step that ends.",
    )
    overdue = models.BooleanField(default=False)
    complete_by = models.DateTimeField(help_text="When the task counts as overdue.")
    undo_at = models.DateTimeField(null=True, help_text="When its undo was asked for.")
    created_at = models.DateTimeField(db_default=DatabaseNow())
    ended_at = models.DateTimeField(null=True)

    # taken from the input when it was made, as its workflow says, for people to know it by
    label = models.CharField(
        max_length=LONGEST_LABEL, db_default="", blank=True, help_text="What people call it."
    )
    contact = models.CharField(
        max_length=LONGEST_CONTACT,
        db_default="",
        blank=True,
        help_text="Whom it is for, in lower case: searched, and personal.",
    )
    value = models.BigIntegerField(
        db_default=0, default=0, help_text="What is at stake, in minor units."
    )
    currency = models.CharField(max_length=LONGEST_CURRENCY, db_default="", blank=True)

    class Meta:
        constraints = [
            # one placement, one task: a submission delivered twice finds the first
            models.UniqueConstraint(fields=["workflow", "reference"], name="task_once"),
            one_of("state", TaskState, "task_state_known"),
            models.CheckConstraint(
                # a task has an end exactly when it has ended
                condition=Q(state__in=["processed", "undone"], ended_at__isnull=False)
                | (~Q(state__in=["processed", "undone"]) & Q(ended_at__isnull=True)),
                name="task_ended_when_final",
            ),
        ]
        indexes = [
            # the supervisor's "overdue and not yet said so": live rows only, so it stays small
            models.Index(
                fields=["complete_by"],
                name="task_due",
                condition=Q(state__in=LIVE_TASK_STATES, overdue=False),
            ),
            # the dashboard's lists by state, newest first: ids are made in the order of time
            models.Index(fields=["state", "-id"], name="task_by_state"),
            # the late ones that are still under way, newest first: the dashboard counts and lists them
            models.Index(
                fields=["-id"],
                name="task_late",
                condition=Q(state__in=LIVE_TASK_STATES, overdue=True),
            ),
            # the roll-ups: what was created, and what ended, since they last looked
            models.Index(fields=["created_at"], name="task_by_creation"),
            models.Index(
                fields=["ended_at"], name="task_by_end", condition=Q(ended_at__isnull=False)
            ),
            # a look-up by the application's own id, or by how it begins
            models.Index(
                fields=["reference"], opclasses=["varchar_pattern_ops"], name="task_by_reference"
            ),
            # and by what people call it, or whom it is for
            models.Index(
                fields=["label"],
                opclasses=["varchar_pattern_ops"],
                name="task_by_label",
            ),
            models.Index(
                fields=["contact", "-id"],
                opclasses=["varchar_pattern_ops", "uuid_ops"],
                name="task_by_contact",
            ),
            # "all above so much", which are few
            models.Index(fields=["value"], name="task_by_value"),
        ]
        permissions = [
            ("operate", "Can see the operators' dashboard"),
            ("resubmit", "Can resubmit failed steps"),
            ("correct", "Can change a failed step's input, or say that it was done by hand"),
            ("undo", "Can have tasks undone"),
            ("force_undo", "Can have tasks undone although something of them cannot be"),
            ("bulk", "Can act on many tasks at once"),
            ("approve", "Can be the second person for a big act on many tasks"),
            ("see_personal", "Can see personal data"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} {self.name}"

    @property
    def name(self) -> str:
        """What people call it."""
        return self.label or self.reference


class Step(models.Model):
    """One record in the state store: one call to one agent.

    While an agent has it, `locked_by`, `dispatched_at` and `complete_by` are set. A step whose
    attempt failed stays `processing` without `locked_by`, its `complete_by` passed, until the
    supervisor has counted it (P24, P26).
    """

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="steps")
    name = models.CharField(max_length=60)
    direction = state_field(Direction, default=Direction.DO, max_length=4)
    agent = models.CharField(max_length=60)
    action = models.CharField(max_length=60)
    after = ArrayField(
        models.CharField(max_length=60),
        default=list,
        help_text="Steps of the same direction that it waits for.",
    )
    request = models.JSONField(help_text="A template while waiting; then what is sent.")

    process_state = state_field(StepState, default=StepState.WAITING)
    locked_by = models.CharField(max_length=80, null=True)  # noqa: DJ001 - the pattern's null
    complete_by = models.DateTimeField(null=True)
    failure_count = models.PositiveIntegerField(default=0)

    attempt = models.PositiveIntegerField(default=0, help_text="Rises with each dispatch; fences.")
    generation = models.PositiveIntegerField(
        default=1, help_text="Part of the key; rises only after a definite rejection."
    )
    priority = models.SmallIntegerField(default=0, help_text="The task's.")
    run_after = models.DateTimeField(null=True, help_text="Set while a retry waits its time.")
    rounds = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Extended waits taken since the last resubmit."
    )
    held_by = models.ForeignKey(
        Hold, models.PROTECT, null=True, related_name="steps", help_text="Set while it is held."
    )
    pending_since = models.DateTimeField(null=True, help_text="When it last became pending.")
    stood_still = models.FloatField(
        default=0.0,
        db_default=0.0,
        help_text="Seconds that its task's deadline has yet to be put off, for waits at a shut "
        "gate or in a hold; negative while more was granted than has been counted.",
    )

    in_doubt = models.BooleanField(
        default=False,
        db_default=False,
        help_text="An attempt under the present key may have had its effect, and none has said.",
    )
    settling = models.BooleanField(
        default=False, db_default=False, help_text="It runs only to learn whether it was done."
    )
    keyed_at = models.DateTimeField(null=True, help_text="First dispatch under the present key.")
    undo_action = models.CharField(max_length=60, blank=True, db_default="")
    undo_request = models.JSONField(null=True, help_text="The template of its undo step.")
    irreversible = models.CharField(
        max_length=200, blank=True, db_default="", help_text="Why it can never be undone, if so."
    )
    charges = models.JSONField(null=True, help_text="The money it moves: {amount, currency}.")

    dispatched_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    outcome = state_field(Outcome, blank=True, help_text="Of the last attempt.")
    result = models.JSONField(null=True)
    error_code = models.CharField(max_length=100, blank=True)
    error_message = models.TextField(blank=True)
    mend_by = models.DateTimeField(
        null=True, help_text="In error: when its task is undone unless somebody mended it."
    )
    alert = models.ForeignKey(Alert, models.PROTECT, null=True, related_name="steps")
    incident = models.ForeignKey(
        Incident,
        models.PROTECT,
        null=True,
        related_name="steps",
        db_index=False,
        help_text="The cause of its last failure.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "name", "direction"], name="step_once"),
            one_of("process_state", StepState, "step_state_known"),
            one_of("direction", Direction, "step_direction_known"),
            models.CheckConstraint(
                # a deadline runs exactly while an agent may be at work
                condition=Q(process_state="processing", complete_by__isnull=False)
                | (~Q(process_state="processing") & Q(complete_by__isnull=True)),
                name="step_deadline_while_processing",
            ),
            models.CheckConstraint(
                # only a step that is being processed is locked by somebody
                condition=Q(process_state="processing") | Q(locked_by__isnull=True),
                name="step_locked_while_processing",
            ),
            models.CheckConstraint(
                # only a pending step waits for its time
                condition=Q(process_state="pending") | Q(run_after__isnull=True),
                name="step_waits_while_pending",
            ),
            models.CheckConstraint(
                condition=Q(process_state="pending") | Q(held_by__isnull=True),
                name="step_held_while_pending",
            ),
            models.CheckConstraint(
                # every error is somebody's to see, and nothing else is
                condition=Q(process_state="error", alert__isnull=False)
                | (~Q(process_state="error") & Q(alert__isnull=True)),
                name="step_error_has_alert",
            ),
            models.CheckConstraint(
                condition=Q(process_state="error") | Q(mend_by__isnull=True),
                name="step_mended_while_error",
            ),
            models.CheckConstraint(
                condition=~Q(process_state="processed") | Q(result__isnull=False),
                name="step_processed_has_result",
            ),
        ]
        indexes = [
            # the claim: pending, due now and not held, by agent, priority, age; read in order, no sort
            models.Index(
                F("agent"),
                F("priority").desc(),
                F("id"),
                name="step_claimable",
                condition=Q(process_state="pending", run_after__isnull=True, held_by__isnull=True),
            ),
            # the oldest that waits, by agent: for the alert and the dashboard
            models.Index(
                fields=["agent", "pending_since"],
                name="step_oldest",
                condition=Q(process_state="pending"),
            ),
            # what a hold keeps, to let it go
            models.Index(fields=["held_by"], name="step_held", condition=Q(held_by__isnull=False)),
            # in flight per agent, for the gate's window: at most the window's size of rows
            models.Index(
                fields=["agent"],
                name="step_in_flight",
                condition=Q(process_state="processing", locked_by__isnull=False),
            ),
            # the supervisor's "expired or failed"
            models.Index(
                fields=["complete_by"],
                name="step_expiry",
                condition=Q(process_state="processing"),
            ),
            # the supervisor's "retries whose time has come"
            models.Index(
                fields=["run_after"],
                name="step_retry",
                condition=Q(process_state="pending", run_after__isnull=False),
            ),
            # the supervisor's "not mended in time"
            models.Index(
                fields=["mend_by"], name="step_unmended", condition=Q(mend_by__isnull=False)
            ),
            # the dashboard's search in what failed, in the order of its list, from the index alone
            models.Index(
                fields=["task"],
                include=["name", "agent", "error_code", "attempt"],
                name="step_failed",
                condition=Q(process_state="error"),
            ),
            # the dashboard's errors, newest first
            models.Index(
                fields=["-ended_at"], name="step_errors", condition=Q(process_state="error")
            ),
            # who suffers from an incident, and who has yet to get over it
            models.Index(
                fields=["incident", "id"],
                name="step_suffering",
                condition=Q(process_state="error", incident__isnull=False),
            ),
            models.Index(
                fields=["incident", "id"],
                name="step_struggling",
                condition=Q(process_state__in=["pending", "processing"], incident__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.task_id}"

    @property
    def key(self) -> str:
        """The idempotency key: the same in every attempt of one generation."""
        return step_key(self.task_id, self.name, self.direction, self.generation)
