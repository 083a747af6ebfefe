"""Send a canary task, which shows that tasks pass through all parts after a start or a deploy.

It has a step for each agent. The agents answer it themselves: no service is called.
"""

import uuid
from datetime import datetime

from django.db.models import Q

from .. import registry
from ..agents.base import Agent
from ..applications.submissions import Posting, submit_many
from ..applications.task_status import progress
from ..cluster.leader_election import NAMES
from ..messaging.queues import SCHEDULER, SUBMISSION
from ..models import Gate, Hold, Lease
from ..models.fields import DatabaseNow
from ..models.hold import HoldCause, Scope
from ..states import GateState, StepState
from ..workflows.step import Step
from ..workflows.workflow import Workflow
from . import monitors

WORKFLOW = "canary"
FIRST = 32_767  # the highest priority: a backlog must not delay it
ACTION = Agent.canary.__name__


def declare() -> None:
    """Declare the workflow, once all agents are known."""
    steps = [
        Step(name=agent, agent=agent, action=ACTION, undo=None) for agent in sorted(registry.agents)
    ]
    if steps:
        made = Workflow(name=WORKFLOW, steps=steps, background=True)
        registry.add(registry.workflows, "workflow", WORKFLOW, made, f"the engine's {__name__}")


def send() -> str:
    """Post a canary task; return its reference."""
    reference = uuid.uuid4().hex
    submit_many(
        [
            Posting(
                workflow=WORKFLOW,
                reference=reference,
                data={},
                priority=FIRST,
                fairness_key=WORKFLOW,
            )
        ]
    )
    return reference


def waits_for(reference: str) -> list[str]:
    """Return the queues that a canary task waits for; empty once it has passed through all parts."""
    task = progress(WORKFLOW, reference)
    if task is None:
        return [SUBMISSION]
    waiting = [step for step in task.steps if step.state != StepState.PROCESSED]
    if any(step.state == StepState.PENDING for step in waiting):
        return [SCHEDULER]
    return [step.name for step in waiting]


def closed() -> list[str]:
    """Return the open gates and the holds that would delay a canary task."""
    delayed = ~Q(state=GateState.CLOSED) | Q(paused_until__gt=DatabaseNow())
    gates = Gate.objects.filter(delayed).values_list("agent", flat=True)
    held = Hold.objects.filter(scope__in=[Scope.ALL, Scope.AGENT], cause=HoldCause.HAND, until=None)
    return [
        *(
            f"the circuit breaker of {agent}, which is not closed"
            for agent in gates.order_by("agent")
        ),
        *(f"the hold of {hold.target}" for hold in held.order_by("id")),
    ]


def unserved(since: datetime | None = None) -> set[str]:
    """Return the queues that no living worker serves, or none that started after `since`."""
    return monitors.unserved(since)


def missing_leaders(since: datetime | None = None) -> list[str]:
    """Return those of supervisor and housekeeper that do not lead, or have not swept after `since`.

    Processes that a schedule starts count as leading until their next sweep is late.
    """
    now = DatabaseNow()
    leads = Lease.objects.filter(Q(expires_at__gt=now) | Q(next_sweep_due__gt=now))
    swept = leads.filter(swept_at__gt=since) if since else leads
    leading = set(swept.exclude(holder="").values_list("name", flat=True))
    return [name for name in NAMES if name not in leading]
