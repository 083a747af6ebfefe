"""Figures over time, kept by the leading supervisor: what the charts show without reading history.

Each row sums up `span` seconds from `start` on. What happened is counted into a row of each span
at once; how long the rows of a span are kept is in `rollups.SPANS`, so there are never many.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ..states import Direction
from .fields import one_of, state_field


class Span(models.IntegerChoices):
    """How many seconds a row sums up."""

    MINUTE = 60, "A minute"
    QUARTER = 900, "A quarter of an hour"
    TWO_HOURS = 7200, "Two hours"


class RollUp(models.Model):
    """What the three kinds of row share."""

    span = models.PositiveIntegerField(choices=Span)
    start = models.DateTimeField()

    class Meta:
        abstract = True


class TaskRollUp(RollUp):
    """What became of a workflow's tasks."""

    workflow = models.CharField(max_length=60)
    created = models.PositiveIntegerField(default=0)
    processed = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0, help_text="Steps that stopped in error.")
    undone = models.PositiveIntegerField(default=0)
    took = ArrayField(
        models.PositiveIntegerField(),
        help_text="Of those processed, how many took how long from their creation: a count for "
        "each bucket of `histogram`.",
    )

    class Meta:
        verbose_name = "roll-up of tasks"
        verbose_name_plural = "roll-ups of tasks"
        constraints = [
            # one row to add to; and, by its first two columns, the charts' and the pruning's index
            models.UniqueConstraint(fields=["span", "start", "workflow"], name="task_rollup_once")
        ]

    def __str__(self) -> str:
        return f"{self.workflow} in the {self.span} s from {self.start:%Y-%m-%d %H:%M}"


class StepRollUp(RollUp):
    """What became of the attempts of one step of a workflow."""

    workflow = models.CharField(max_length=60)
    step = models.CharField(max_length=60)
    direction = state_field(Direction, max_length=4)
    agent = models.CharField(max_length=60)
    done = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0, help_text="Transient, unknown or expired.")
    rejected = models.PositiveIntegerField(default=0)
    took = ArrayField(
        models.PositiveIntegerField(),
        help_text="Of those done, how many took how long from dispatch to reply.",
    )

    class Meta:
        verbose_name = "roll-up of attempts"
        verbose_name_plural = "roll-ups of attempts"
        constraints = [
            one_of("direction", Direction, "step_rollup_direction_known"),
            # as above
            models.UniqueConstraint(
                fields=["span", "start", "workflow", "step", "direction", "agent"],
                name="step_rollup_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.step} in the {self.span} s from {self.start:%Y-%m-%d %H:%M}"


class GateRollUp(RollUp):
    """How full one agent's gate was, from samples that the leader takes every few seconds."""

    agent = models.CharField(max_length=60)
    samples = models.PositiveIntegerField(default=0)
    blocked_samples = models.PositiveIntegerField(
        default=0, help_text="Samples at which no request might be sent."
    )
    in_flight = models.PositiveIntegerField(default=0, help_text="The most that was seen.")
    room = models.PositiveIntegerField(default=0, help_text="The least that might be in flight.")
    waiting = models.PositiveIntegerField(default=0, help_text="The most that was seen.")
    oldest = models.FloatField(default=0.0, help_text="Seconds; the most that was seen.")

    class Meta:
        verbose_name = "roll-up of a gate"
        verbose_name_plural = "roll-ups of gates"
        constraints = [
            # as above
            models.UniqueConstraint(fields=["span", "start", "agent"], name="gate_rollup_once")
        ]

    def __str__(self) -> str:
        return f"{self.agent} in the {self.span} s from {self.start:%Y-%m-%d %H:%M}"


class RollUpMark(models.Model):
    """How far has been counted: one row, moved in the transaction that counts.

    All that ended before `until` is in the roll-ups, once. `noted_until` is how far the next count
    goes, as soon as every transaction that was at work when that was noted has ended.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    until = models.DateTimeField(null=True)
    noted_until = models.DateTimeField(null=True)
    noted_xid = models.BigIntegerField(null=True)
    epoch = models.PositiveBigIntegerField(default=0, help_text="Of the leader that moved it last.")

    class Meta:
        verbose_name = "roll-up watermark"
        verbose_name_plural = "roll-up watermark"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="rollup_mark_single")]

    def __str__(self) -> str:
        return f"counted until {self.until}"
