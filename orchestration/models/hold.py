"""What keeps steps from being claimed, by hand or by itself, and for how long it did."""

from django.db import models
from django.db.models import Q

from .fields import DatabaseNow, one_of, state_field


class Scope(models.TextChoices):
    """What a hold holds."""

    ALL = "all", "Everything"
    AGENT = "agent", "An agent"
    STEP = "step", "A step of a workflow"
    TASK = "task", "A task"


class HoldCause(models.TextChoices):
    """Why a hold is there."""

    HAND = "hand", "By hand"
    BREAKER = "breaker", "Too many failures"  # the gate itself lets probes pass
    NO_WORKER = "no_worker", "No worker"


_IN_FORCE = "EXISTS (SELECT FROM orchestration_hold h WHERE h.until IS NULL AND h.scope = "
# SQL conditions: a hold in force keeps everything, step `s` of workflow `t.workflow`, or its task
HOLDS_ALL = f"{_IN_FORCE} 'all')"
HOLDS_STEP = f"""{_IN_FORCE} 'step'
    AND h.agent = '' AND h.workflow = t.workflow AND h.step = s.name)"""
HOLDS_TASK = (
    "EXISTS (SELECT FROM orchestration_hold h WHERE h.until IS NULL AND h.task_id = s.task_id)"
)


def holds_agent(agent: str) -> str:
    """Return the SQL condition that a hold keeps an agent; a breaker does not, as probes pass it."""
    return f"{_IN_FORCE} 'agent' AND h.agent = {agent} AND h.cause <> 'breaker')"


class Hold(models.Model):
    """A time in which steps were held, for any cause: the deadlines of their tasks stand still in it.

    In force until `until`. While it is, steps of its scope are not claimed, except that a breaker's
    gate lets probes through.
    """

    scope = state_field(Scope)
    agent = models.CharField(max_length=60, blank=True)
    workflow = models.CharField(max_length=60, blank=True)
    step = models.CharField(max_length=60, blank=True)
    task = models.ForeignKey(
        "Task", models.CASCADE, null=True, blank=True, related_name="holds", db_index=False
    )
    cause = state_field(HoldCause)
    reason = models.CharField(max_length=500)
    actor = models.CharField(max_length=150)
    since = models.DateTimeField(db_default=DatabaseNow())
    until = models.DateTimeField(null=True, blank=True)
    released_by = models.CharField(max_length=150, blank=True)
    released_why = models.CharField(max_length=500, blank=True)
    cleared = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The hold has ended, and its steps can be claimed again.",
    )

    class Meta:
        constraints = [
            one_of("scope", Scope, "hold_scope_known"),
            one_of("cause", HoldCause, "hold_cause_known"),
            models.CheckConstraint(
                # what is held is named, and nothing else
                condition=Q(scope="all", agent="", step="", workflow="", task__isnull=True)
                | (Q(scope="agent", step="", workflow="", task__isnull=True) & ~Q(agent=""))
                | (Q(scope="step", agent="", task__isnull=True) & ~Q(step="") & ~Q(workflow=""))
                | Q(scope="task", agent="", step="", workflow="", task__isnull=False),
                name="hold_target",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="hold_with_reason"),
            # one hold for each target and cause
            models.UniqueConstraint(
                fields=["scope", "agent", "workflow", "step", "task", "cause"],
                condition=Q(until__isnull=True),
                nulls_distinct=False,
                name="hold_once",
            ),
        ]
        indexes = [
            # those that concern more than a task, which are few: in force, and the last that ended
            models.Index(
                fields=["scope", "agent", "until"],
                name="hold_wide",
                condition=~Q(scope="task"),
            ),
            # what the supervisor has yet to clear
            models.Index(
                fields=["id"],
                name="hold_uncleared",
                condition=Q(until__isnull=False, cleared=False),
            ),
            # the dashboard's lists: what is held, widest first, and what was lately
            models.Index(
                fields=["scope", "-since"],
                name="hold_in_force",
                condition=Q(until__isnull=True),
            ),
            models.Index(fields=["-until"], name="hold_ended", condition=Q(until__isnull=False)),
            # a task's own, and the foreign key
            models.Index(fields=["task"], name="hold_by_task", condition=Q(task__isnull=False)),
        ]
        permissions = [("hold", "Can hold and release tasks, steps and agents")]

    def __str__(self) -> str:
        return f"{self.target} held: {self.reason}"

    @property
    def target(self) -> str:
        """Return what is held, in words."""
        match self.scope:
            case Scope.AGENT:
                return f"agent {self.agent}"
            case Scope.STEP:
                return f"step {self.workflow}/{self.step}"
            case Scope.TASK:
                return f"task {self.task_id}"
        return "everything"
