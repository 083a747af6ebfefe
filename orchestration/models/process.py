"""The processes at work: who leads, and who lives."""

from django.db import models

from .fields import DatabaseNow


class Lease(models.Model):
    """The right to lead, until `expires_at` on the database's clock.

    `epoch` rises with every change of the holder, so that a write of a former leader is recognised.
    """

    name = models.CharField(max_length=60, primary_key=True)
    holder = models.CharField(max_length=80, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    expires_at = models.DateTimeField(db_default=DatabaseNow())
    renewed_at = models.DateTimeField(db_default=DatabaseNow())
    swept_at = models.DateTimeField(null=True, help_text="When the leader last swept to the end.")
    last_sweep_summary = models.CharField(
        max_length=200, blank=True, db_default="", help_text="What a sweep last had to do."
    )
    last_sweep_summary_at = models.DateTimeField(null=True)
    next_sweep_due = models.DateTimeField(
        null=True, help_text="Until when the next sweep is not missed, if a schedule starts them."
    )
    memory = models.JSONField(
        default=dict,
        db_default={},
        help_text="What a sweep that a schedule started has left behind.",
    )

    def __str__(self) -> str:
        return f"{self.name} held by {self.holder or 'none'}"


class ClockJump(models.Model):
    """A jump of the database's clock, by a number of seconds, that a leader has handled.

    Their sum is what the clock is off by the supervisors' own, steady clocks.
    """

    at = models.DateTimeField(
        db_default=DatabaseNow(), help_text="When it was dealt with, on the clock after the jump."
    )
    seconds = models.FloatField(help_text="Positive when the clock went forward.")
    by = models.CharField(max_length=100, help_text="The supervisor.")

    def __str__(self) -> str:
        return f"{self.seconds:+.0f} s"


class JumpedTime(models.Model):
    """A time that a jump of the database's clock has yet to move, if it still is what it was.

    It is the `field` of the row with that `key` in the table of a `kind`.
    """

    kind = models.CharField(max_length=40)
    key = models.CharField(max_length=80)
    field = models.CharField(max_length=40)
    was = models.DateTimeField()
    becomes = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "field", "key"], name="jumped_time_once")
        ]

    def __str__(self) -> str:
        return f"{self.field} of {self.kind} {self.key}"


class Worker(models.Model):
    """A component at work, in one start of a process: a queue's worker, or a supervisor.

    Seen every few seconds while alive. A process that serves several queues has a row for each.
    """

    instance = models.CharField(max_length=80, primary_key=True)
    queue = models.CharField(max_length=100)
    host = models.CharField(max_length=120)
    pid = models.PositiveIntegerField()
    clock_offset = models.FloatField(
        default=0, help_text="Seconds the database's clock is ahead of the process's."
    )
    started_at = models.DateTimeField(db_default=DatabaseNow())
    seen_at = models.DateTimeField(db_default=DatabaseNow())
    stepped_back_at = models.DateTimeField(
        null=True,
        help_text="Since when it takes no requests, as its calls fail and its siblings' do not.",
    )

    class Meta:
        indexes = [models.Index(fields=["queue", "seen_at"], name="worker_by_queue")]

    def __str__(self) -> str:
        return self.instance
