"""Create the rows that agents, workflows and schedules need, with their first values."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Exists, OuterRef

from .. import conf, registry
from ..cluster import leader_election
from ..cluster.duty import Duty
from ..models import Gate, Policy, RetentionPolicy, RollUpMark, StepPolicy, SupervisorPolicy
from ..schedules import rows as schedule_rows
from ..states import LOCAL


def ensure(*, plan: Sequence[tuple[Any, bool]] = (), **_: Any) -> None:
    """Create missing rows; never change what an admin has set.

    Runs after every forward migration. After a backward one, tables may lack columns of the models.
    """
    if any(backwards for _, backwards in plan):
        return
    ensure_declared()
    SupervisorPolicy.objects.get_or_create(id=1)
    RollUpMark.objects.get_or_create(id=1)
    leader_election.ensure()


def ensure_declared() -> None:
    """Create the missing rows of agents, workflows and schedules."""
    ensure_agents()
    ensure_workflows()
    ensure_steps()
    schedule_rows.ensure_declared()


def ensure_agents() -> None:
    """Create the rows of new agents: a deploy may bring one without a migration."""
    gates = Gate.objects.filter(agent=OuterRef("agent"))
    known = set(Policy.objects.filter(Exists(gates)).values_list("agent", flat=True))
    for name, agent in sorted(registry.agents.items()):
        if name not in known:
            Policy.objects.get_or_create(agent=name, defaults=agent.policy)
            Gate.objects.get_or_create(agent=name)


def ensure_workflows() -> None:
    """Create the retention policies of new workflows."""
    known = set(RetentionPolicy.objects.values_list("workflow", flat=True))
    for name in sorted(registry.workflows.keys() - known):
        keep_days = registry.workflows[name].keep_days
        RetentionPolicy.objects.get_or_create(workflow=name, defaults={"keep_days": keep_days})


def ensure_steps() -> None:
    """Create the rows of new steps that call an agent; note which agent each of them calls by now.

    Rows of steps that are not declared any more stay, as those of agents do: tasks may still have them.
    """
    rows = StepPolicy.objects.values_list("workflow", "step", "agent")
    known = {(workflow, step): agent for workflow, step, agent in rows}
    for name, workflow in sorted(registry.workflows.items()):
        for step in workflow.steps:
            place, agent = {"workflow": name, "step": step.name}, known.get((name, step.name))
            if step.agent in {LOCAL, agent}:
                continue
            if agent is None:
                defaults = {"agent": step.agent, **step.policy}
                StepPolicy.objects.get_or_create(**place, defaults=defaults)
            else:
                StepPolicy.objects.filter(**place).update(agent=step.agent)


ADD_ROWS = Duty(
    name="add rows of what code declares",
    run=lambda _: ensure_declared(),
    every=conf.DUTY_INTERVAL_S,
)
