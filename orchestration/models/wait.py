"""What steps await: a result that comes later, until when, and what services call it."""

from django.db import models
from django.db.models import Q

from .fields import DatabaseNow, StoredJSON
from .hold import holds_agent
from .step import Step
from .task import Task

# Whether the result of any step was reported before the step awaited it: along wait_reported
REPORTED_EARLY = (
    "EXISTS (SELECT FROM orchestration_wait WHERE report IS NOT NULL AND awaited_at IS NOT NULL)"
)
# The agents whose services may be asked: none whose breaker is not closed, or that are held
ASKABLE = f"""orchestration_policy p JOIN orchestration_gate g ON g.agent = p.agent AND g.state = 'closed'
    AND (g.paused_until IS NULL OR g.paused_until <= (SELECT clock_timestamp()))
    AND NOT {holds_agent("p.agent")}"""
# The agents with when the first question to each is due: one probe of wait_look for each
FIRST_LOOKS = f"""SELECT p.agent, first.look_at FROM {ASKABLE} CROSS JOIN LATERAL (
    SELECT w.look_at FROM orchestration_wait w
    WHERE w.agent = p.agent AND w.look_at IS NOT NULL ORDER BY w.look_at LIMIT 1) first"""  # noqa: S608 - constants of our own
ANY_TO_ASK = f"""EXISTS (SELECT FROM ({FIRST_LOOKS}) looks
    WHERE look_at <= (SELECT clock_timestamp()))"""


class Wait(models.Model):
    """The times of a step whose result comes later, or a result that came before it was awaited.

    The supervisor looks along `due_at`, a scheduler asks the service along `look_at`. The row is removed
    as the step ends; a step that awaits nothing has none, so these cost it nothing.
    """

    step = models.OneToOneField(Step, models.CASCADE, related_name="awaited", db_constraint=False)
    task = models.ForeignKey(Task, models.CASCADE, db_constraint=False, related_name="waits")
    agent = models.CharField(max_length=60, blank=True, default="")
    external_id = models.CharField(
        max_length=200, blank=True, default="", help_text="The service's own name of what it does."
    )
    person = models.CharField(
        max_length=60, blank=True, default="", help_text="The role of who decides."
    )
    signal = models.CharField(max_length=60, blank=True, default="")
    awaited_at = models.DateTimeField(
        null=True, help_text="Since when; empty: its result came before."
    )
    ends_by = models.DateTimeField(null=True, help_text="By when the result has to be there.")
    fixed = models.BooleanField(
        default=False,
        db_default=False,
        help_text="`ends_by` is a time of the calendar, no duration.",
    )
    due_at = models.DateTimeField(null=True, help_text="The next reminder, or `ends_by`.")
    look = models.FloatField(
        null=True, help_text="Seconds between two questions to the service; 0: only at the end."
    )
    look_at = models.DateTimeField(null=True, help_text="When the service is asked next.")
    asked_at = models.DateTimeField(null=True, help_text="Of a question without an answer yet.")
    looks = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How often it was asked."
    )
    asked_last = models.BooleanField(
        default=False, db_default=False, help_text="Its time is over: it was asked once more."
    )
    reminded = models.PositiveSmallIntegerField(default=0, db_default=0)
    report = StoredJSON(
        null=True,
        help_text="What came before it was awaited: {id, outcome, result, code, message, actor}.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(awaited_at__isnull=True)
                | Q(ends_by__isnull=False, due_at__isnull=False),
                name="wait_ends",
            ),
        ]
        indexes = [
            # the supervisor's "reminders and ends that are due"
            models.Index(fields=["due_at"], name="wait_due", condition=Q(due_at__isnull=False)),
            # the schedulers' "services to ask", and how many are being asked
            models.Index(
                fields=["agent", "look_at"], name="wait_look", condition=Q(look_at__isnull=False)
            ),
            models.Index(
                fields=["agent", "asked_at"], name="wait_asked", condition=Q(asked_at__isnull=False)
            ),
            # what waits for people of a role, due first
            models.Index(fields=["person", "ends_by"], name="wait_person", condition=~Q(person="")),
            # what was reported before it was awaited, to be applied
            models.Index(
                fields=["step"],
                name="wait_reported",
                condition=Q(report__isnull=False, awaited_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"wait of step {self.step_id}"


class ExternalId(models.Model):
    """What a service calls what it accepted of a step; a step has one for each that it was given.

    It stays as long as the step, which what is reported late, or once more, is to be found by.
    """

    step = models.ForeignKey(
        Step, models.CASCADE, related_name="external_ids", db_index=False, db_constraint=False
    )
    task = models.ForeignKey(Task, models.CASCADE, db_index=False, db_constraint=False)
    agent = models.CharField(max_length=60)
    external_id = models.CharField(max_length=200, help_text="As the service knows it.")
    attempt = models.PositiveIntegerField(help_text="The attempt that it accepted.")
    accepted_at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        constraints = [
            # a repeat under the same key is accepted under the same id; also for the removal of tasks
            models.UniqueConstraint(fields=["step", "external_id"], name="external_id_once"),
        ]
        indexes = [
            # which step a report by the service's own id is about
            models.Index(fields=["agent", "external_id"], name="external_id_of_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.external_id} at {self.agent}"
