"""Tasks that are submitted by the calendar: when, what, and how far each schedule is."""

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords

from ..database import clock
from ..decisions import schedule as decisions
from ..decisions.due_times import Timing
from ..decisions.schedule import Plan, Position
from .fields import DatabaseNow, Prioritized, StoredJSON, one_of, state_field

DAY = 86_400.0
LONGEST_SPAN = 31 * DAY
FAIRNESS_KEY = "schedules"  # all that is scheduled takes turns with the rest as one key


class Overlap(models.TextChoices):
    """What happens at a due time while the run before has not ended."""

    SKIP = decisions.Overlap.SKIP.value, "Skip it"
    QUEUE = decisions.Overlap.QUEUE.value, "Run it after that one; skip more"
    ALLOW = decisions.Overlap.ALLOW.value, "Run it as well"


class CatchUp(models.TextChoices):
    """Which due times are submitted that passed while nothing could be."""

    NONE = decisions.CatchUp.NONE.value, "None"
    LAST = decisions.CatchUp.LAST.value, "The last one"
    ALL = decisions.CatchUp.ALL.value, "All, oldest first"


# What changes when it is due; how far it is, which only the engine writes.
TIMED_BY = ("cron", "zone", "every", "start_at", "jitter", "paused")
POSITION = (
    "due_at", "look_at", "waiting_due", "last_due", "last_reference", "submitted", "skipped", "missed",
    "skipped_due", "skipped_behind", "problem", "failing_since", "tries",
)  # fmt: skip


class Schedule(Prioritized):
    """When tasks of a workflow are submitted, with which input, and how far that is.

    The leading housekeeper submits them. What a person or an application sets is planned anew as it is
    saved: a due time of before a change does not count after it.
    """

    name = models.CharField(max_length=60, unique=True)
    workflow = models.CharField(max_length=60)
    data = StoredJSON(default=dict, db_default={}, blank=True, help_text="The input of each task.")
    due_field = models.CharField(
        max_length=60, blank=True, default="", db_default="",
        help_text="Field of the input that has the due time of each task, as clocks of its zone show it.",
    )  # fmt: skip
    cron = models.CharField(
        max_length=100, blank=True, default="", db_default="",
        help_text="Minute, hour, day of month, month, day of week: “0 2 * * *” is at 02:00 every day.",
    )  # fmt: skip
    zone = models.CharField(
        max_length=60, default="UTC", db_default="UTC", verbose_name="time zone",
        help_text="Time zone of the cron expression, such as Europe/Berlin.",
    )  # fmt: skip
    every = models.PositiveIntegerField(
        null=True, blank=True, help_text="Seconds between two due times, instead of a cron expression."
    )  # fmt: skip
    start_at = models.DateTimeField(
        null=True, blank=True, help_text="The first due time, of those that recur at an interval."
    )  # fmt: skip
    overlap = state_field(
        Overlap, default=Overlap.SKIP, db_default=Overlap.SKIP,
        help_text="What happens at a due time while the task of the one before has not ended.",
    )  # fmt: skip
    catch_up = state_field(
        CatchUp, default=CatchUp.LAST, db_default=CatchUp.LAST,
        help_text="Which due times are submitted that passed while nothing could be.",
    )  # fmt: skip
    catch_up_within = models.FloatField(
        default=DAY, db_default=DAY,
        help_text="Seconds after which a due time that passed is not submitted any more.",
    )  # fmt: skip
    jitter = models.FloatField(
        default=0.0, db_default=0.0,
        help_text="Each task is submitted up to this number of seconds after its due time.",
    )  # fmt: skip
    reply_to = models.CharField(
        max_length=60, blank=True, default="", db_default="",
        help_text="The application that receives the status messages.",
    )  # fmt: skip
    paused = models.BooleanField(
        default=False, db_default=False, help_text="Due times that pass meanwhile are not caught up."
    )  # fmt: skip
    declared = models.BooleanField(
        default=False, db_default=False, editable=False, help_text="The code of a workflow declares it."
    )  # fmt: skip
    # how far it is: only the engine writes what follows
    due_at = models.DateTimeField(
        null=True, editable=False, help_text="The next due time."
    )  # fmt: skip
    look_at = models.DateTimeField(
        null=True, editable=False, help_text="When the housekeeper looks at it next."
    )  # fmt: skip
    waiting_due = models.DateTimeField(
        null=True, editable=False, help_text="The due time whose task waits for the end of the last one."
    )  # fmt: skip
    last_due = models.DateTimeField(
        null=True, editable=False, help_text="The due time of the last task."
    )  # fmt: skip
    last_reference = models.CharField(
        max_length=100, blank=True, default="", db_default="", editable=False
    )  # fmt: skip
    submitted = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    skipped = models.PositiveIntegerField(
        default=0, db_default=0, editable=False,
        help_text="Due times at which the task of the one before had not ended.",
    )  # fmt: skip
    missed = models.PositiveIntegerField(
        default=0, db_default=0, editable=False,
        help_text="Due times that passed while nothing could be submitted.",
    )  # fmt: skip
    skipped_due = models.DateTimeField(
        null=True, editable=False, help_text="The due time that was skipped last."
    )  # fmt: skip
    skipped_behind = models.CharField(
        max_length=100, blank=True, default="", db_default="", editable=False,
        help_text="The reference of the task that had not ended then.",
    )  # fmt: skip
    problem = models.TextField(
        blank=True, default="", db_default="", editable=False, help_text="Why it cannot submit."
    )  # fmt: skip
    failing_since = models.DateTimeField(null=True, editable=False)
    tries = models.PositiveSmallIntegerField(
        default=0, db_default=0, editable=False, help_text="Number of failures."
    )  # fmt: skip
    created_at = models.DateTimeField(db_default=DatabaseNow(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    history = HistoricalRecords(excluded_fields=[*POSITION, "declared", "created_at"])

    class Meta:
        ordering = ["name"]
        constraints = [
            one_of("overlap", Overlap, "schedule_overlap_known"),
            one_of("catch_up", CatchUp, "schedule_catch_up_known"),
            models.CheckConstraint(
                condition=Q(cron="", every__gte=1, start_at__isnull=False)
                | Q(~Q(cron=""), every__isnull=True, start_at__isnull=True),
                name="schedule_one_timing",
                violation_error_message=(
                    "Give either a cron expression, or a number of seconds and the first due time."
                ),
            ),
            models.CheckConstraint(
                condition=Q(jitter__gte=0, jitter__lte=DAY),
                name="schedule_jitter",
                violation_error_message="Jitter is between 0 and 86,400 seconds.",
            ),
            models.CheckConstraint(
                condition=Q(catch_up_within__gte=60, catch_up_within__lte=LONGEST_SPAN),
                name="schedule_catch_up_within",
                violation_error_message="Due times are caught up within 60 seconds to 31 days.",
            ),
            models.CheckConstraint(
                condition=~Q(overlap=Overlap.SKIP, catch_up=CatchUp.ALL),
                name="schedule_all_may_overlap",
                violation_error_message=(
                    "To catch up all due times, queue them or allow overlap: of skipped ones one runs."
                ),
            ),
        ]
        indexes = [
            # the housekeeper's: which schedule is due; and the alert about late ones
            models.Index(fields=["look_at"], name="schedule_due", condition=Q(look_at__isnull=False)),
            # the alert about those that cannot submit: few
            models.Index(fields=["failing_since"], name="schedule_failing", condition=~Q(problem="")),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name

    @property
    def timing(self) -> Timing:
        """Return when it is due."""
        return Timing(
            cron=self.cron, zone=self.zone, every=self.every, start_at=self.start_at, jitter=self.jitter
        )  # fmt: skip

    @property
    def plan(self) -> Plan:
        """Return what it is set to do."""
        return Plan(
            name=self.name, timing=self.timing, overlap=self.overlap, catch_up=self.catch_up,
            within=timedelta(seconds=self.catch_up_within),
        )  # fmt: skip

    @property
    def position(self) -> Position:
        """Return how far it is."""
        return Position(due=self.due_at, waiting=self.waiting_due)

    def input_at(self, due: datetime) -> dict[str, Any]:
        """Return the input of the task of a due time."""
        named = {self.due_field: self.timing.local(due).isoformat()} if self.due_field else {}
        return {**self.data, **named}

    def save(self, *args: Any, **options: Any) -> None:
        """Save what was set, and plan anew if that changes when it is due: lock the row before.

        What it could not submit is tried again at once.
        """
        before = type(self).objects.filter(pk=self.pk).values(*TIMED_BY, "workflow").first()
        if before is None or any(before[name] != getattr(self, name) for name in TIMED_BY):
            self._begin(clock.database_now())
        elif self.problem and self.due_at:
            self.look_at = self.plan.starts(self.due_at)
        if before and before["workflow"] != self.workflow:
            self.last_reference = ""  # of a task of another workflow
        self.problem, self.failing_since, self.tries = "", None, 0
        super().save(*args, **options)

    def _begin(self, now: datetime) -> None:
        """Plan it anew: nothing that was due or waited before counts."""
        if self.waiting_due is not None:
            self.skipped, self.skipped_due = self.skipped + 1, self.waiting_due
            self.skipped_behind = self.last_reference
        self.waiting_due = self.due_at = self.look_at = None
        if not self.paused:
            verdict = decisions.begin(self.plan, now)
            self.due_at, self.look_at = verdict.position.due, verdict.look_at
