"""The records in the state store: one for each step of a task (P20)."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ..decisions.fairness import LONGEST_KEY
from ..payloads.keys import step_key
from ..states import Direction, Outcome, StepState
from .alert import Alert
from .fields import StoredJSON, one_of, state_field
from .hold import Hold
from .incident import Incident
from .step_indexes import INDEXES
from .task import Task


def claimable(step: str) -> str:
    """Return the SQL condition that a row may be claimed: that of the indexes `step_turn` and `step_line`."""
    return f"{step}.process_state = 'pending' AND {step}.run_after IS NULL AND {step}.held_by_id IS NULL"


class Step(models.Model):
    """One record in the state store: one call to one agent.

    While an agent has it, `locked_by`, `dispatched_at` and `complete_by` are set. A step whose
    attempt failed stays `processing` without `locked_by`, its `complete_by` passed, until the
    supervisor has counted it (P24, P26).
    """

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(
        Task,
        models.CASCADE,
        related_name="steps",
        db_index=False,
        db_constraint=False,
        help_text="Found by step_once; the audit looks for tasks that are gone.",
    )
    name = models.CharField(max_length=60)
    direction = state_field(Direction, default=Direction.DO, max_length=4)
    agent = models.CharField(max_length=60)
    action = models.CharField(max_length=60)
    after = ArrayField(
        models.CharField(max_length=60),
        default=list,
        help_text="Steps of the same direction that it waits for.",
    )
    request = StoredJSON(help_text="A template while waiting; then what is sent.")
    loads = StoredJSON(
        null=True, help_text="What its workflow loads: [where in the request, path of the value]."
    )
    loaded = StoredJSON(
        null=True, help_text="What was loaded under the present key, until it has ended."
    )

    process_state = state_field(StepState, default=StepState.WAITING)
    locked_by = models.CharField(max_length=80, null=True)  # noqa: DJ001 - the pattern's null
    complete_by = models.DateTimeField(null=True)
    failure_count = models.PositiveIntegerField(default=0)

    attempt = models.PositiveIntegerField(default=0, help_text="Rises with each dispatch; fences.")
    generation = models.PositiveIntegerField(
        default=1, help_text="Part of the key; rises only after a definite rejection."
    )
    priority = models.SmallIntegerField(default=0, help_text="The task's.")
    fairness_key = models.CharField(
        max_length=LONGEST_KEY, blank=True, default="", db_default="", help_text="The task's."
    )
    turn = models.BigIntegerField(
        default=0, db_default=0, help_text="Its place among those of its agent and priority."
    )
    run_after = models.DateTimeField(null=True, help_text="Set while a retry waits its time.")
    extended_waits = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Extended waits taken since the last resubmit."
    )
    isolated = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Half of its chances ended in silence: the rest it has while no other such step "
        "of its agent is in flight.",
    )
    held_by = models.ForeignKey(
        Hold,
        models.PROTECT,
        null=True,
        related_name="steps",
        db_index=False,
        help_text="Set while it is held.",
    )
    pending_since = models.DateTimeField(null=True, help_text="When it last became pending.")
    held_seconds = models.FloatField(
        default=0.0,
        db_default=0.0,
        help_text="Seconds that its task's deadline has yet to be put off, for waits at an "
        "open breaker or in a hold; negative while more was granted than has been counted.",
    )

    in_doubt = models.BooleanField(
        default=False,
        db_default=False,
        help_text="An attempt under the present key may have had its effect, and no reply has shown it.",
    )
    probing_outcome = models.BooleanField(
        default=False, db_default=False, help_text="It runs only to learn whether it was done."
    )
    keyed_at = models.DateTimeField(null=True, help_text="First dispatch under the present key.")
    undo_action = models.CharField(max_length=60, blank=True, db_default="")
    undo_request = StoredJSON(null=True, help_text="The template of its undo step.")
    irreversible = models.CharField(
        max_length=200, blank=True, db_default="", help_text="Why it can never be undone, if so."
    )
    flow = StoredJSON(
        null=True, help_text="Its condition, and what follows a refusal: {when, refused}."
    )
    done_by = models.CharField(
        max_length=150,
        blank=True,
        default="",
        db_default="",
        help_text="Who did it by hand, if a person did.",
    )
    charges = StoredJSON(null=True, help_text="The money it moves: {amount, currency}.")

    dispatched_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    outcome = state_field(Outcome, blank=True, help_text="Of the last attempt.")
    result = StoredJSON(null=True)
    error_code = models.CharField(max_length=100, blank=True)
    error_message = models.TextField(blank=True)
    retry_after = models.FloatField(
        null=True, help_text="Seconds for which the service asked that it be put off, if it failed."
    )
    failed_at = models.DateTimeField(
        null=True, help_text="When it last failed, since it was resubmitted."
    )
    own_trouble = models.BooleanField(
        default=False,
        db_default=False,
        help_text="It failed before and after its service answered others: its failures are its own.",
    )
    resolve_by = models.DateTimeField(
        null=True, help_text="In error: when its task is undone unless it was resolved."
    )
    holds_counted_until = models.DateTimeField(
        null=True, help_text="Until when the holds that put `resolve_by` off have been counted."
    )
    patience = StoredJSON(
        null=True,
        help_text="How long to wait for a service that rejects it: {code, wait, until}. While it is "
        "rejected with that code, it is retried every `wait` seconds, under a new key, until then.",
    )
    alert = models.ForeignKey(
        Alert, models.PROTECT, null=True, related_name="steps", db_index=False
    )
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
                # only a step that is processing has a `locked_by`
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
                # looks for what waits go along this time, and would never see one without it
                condition=~Q(process_state="pending") | Q(pending_since__isnull=False),
                name="step_pending_since",
            ),
            models.CheckConstraint(
                # every error has an alert, and no other state has one
                condition=Q(process_state="error", alert__isnull=False)
                | (~Q(process_state="error") & Q(alert__isnull=True)),
                name="step_error_has_alert",
            ),
            models.CheckConstraint(
                condition=Q(process_state="error") | Q(resolve_by__isnull=True),
                name="step_mended_while_error",
            ),
            models.CheckConstraint(
                condition=~Q(process_state="processed") | Q(result__isnull=False),
                name="step_processed_has_result",
            ),
        ]
        indexes = INDEXES

    def __str__(self) -> str:
        return f"{self.name} of {self.task_id}"

    @property
    def label(self) -> str:
        """What it is called on pages."""
        return f"undo of {self.name}" if self.direction == Direction.UNDO else self.name

    @property
    def key(self) -> str:
        """The idempotency key: the same in every attempt of one generation."""
        return step_key(self.task_id, self.name, self.direction, self.generation)
