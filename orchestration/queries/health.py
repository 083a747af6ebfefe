"""What is wrong with the machinery itself, and what every page says of the whole."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import QuerySet

from .. import conf, leader, queues, registry, requeue, sounding, sql
from ..models import Incident, Operation, Task
from ..models.incident import IncidentState
from ..models.operation import OperationState
from ..states import TaskState
from .agents import CAP

NO_LEADER = {
    leader.SUPERVISOR: "No supervisor leads: what works goes on; what fails is neither retried nor "
    "reported. Start one.",
    leader.HOUSEKEEPER: "No housekeeper leads: tasks go on; bulk operations, incidents, figures and "
    "alerts stand still. Start one.",
}
SLOW = 1.0  # seconds for a few small queries: more is felt on every page

MACHINERY = """
SELECT
    ARRAY(SELECT name FROM unnest(%(leases)s::text[]) AS needed (name)
        WHERE NOT EXISTS (SELECT 1 FROM orchestration_lease l WHERE l.name = needed.name
            AND greatest(expires_at, awaited_until) > (SELECT clock_timestamp()))),
    ARRAY(SELECT DISTINCT queue FROM orchestration_worker
        WHERE seen_at > (SELECT clock_timestamp()) - %(alive)s * interval '1 second'),
    EXISTS (SELECT 1 FROM orchestration_worker WHERE queue = ANY(%(needed)s)
        AND seen_at > (SELECT clock_timestamp()) - %(all_silent)s * interval '1 second')
"""


@dataclass(frozen=True, kw_only=True)
class Shell:
    """What stands on every page: how much waits for a person, by section, and what is wrong."""

    counts: Mapping[str, int] = field(default_factory=dict)
    problems: Sequence[str] = ()

    @property
    def attention(self) -> int:
        """Return how many tasks wait for somebody's decision."""
        return self.counts.get("tasks", 0)


def shell() -> Shell:
    """Read what every page shows: five small queries, whatever the number of tasks."""
    begun = time.monotonic()
    counts = {
        "tasks": _counted(Task.objects.filter(state=TaskState.ERROR)),
        "incidents": _counted(
            Incident.objects.filter(state__in=(IncidentState.NEW, IncidentState.RETURNED))
        ),
        "operations": _counted(
            Operation.objects.filter(
                state__in=(
                    OperationState.APPROVAL,
                    OperationState.WAITING,
                    OperationState.RUNNING,
                    OperationState.PAUSED,
                )
            )
        ),
        "dead_letters": requeue.waiting(CAP + 1),
    }
    needed = _needed_queues()
    told = {
        "leases": list(leader.NAMES),
        "alive": conf.ALIVE,
        "all_silent": conf.ALL_SILENT,
        "needed": sorted(needed),
    }
    leaderless, served, manned = sql.run(MACHINERY, told)[0]
    slow = time.monotonic() - begun > SLOW
    found = _problems(
        leaderless=leaderless, unserved=needed - set(served), deserted=bool(needed) and not manned
    )
    if slow:
        found.append(
            "The database answers slowly: work goes on, but it and these pages take longer."
        )
    return Shell(counts=counts, problems=found)


def _counted(rows: "QuerySet[Task] | QuerySet[Incident] | QuerySet[Operation]") -> int:
    return rows.order_by()[: CAP + 1].count()


def _problems(*, leaderless: Sequence[str], unserved: set[str], deserted: bool) -> list[str]:
    """Return what is wrong with the machinery, a sentence each: what it means, what goes on."""
    found = []
    if not sounding.answers():
        found.append(
            "Redis is down: whatever was accepted is safe, and is accepted further; nothing is "
            "processed until Redis is back."
        )
    found += [NO_LEADER[name] for name in leaderless]
    if deserted:
        found.append(
            "No worker is there: whatever was accepted is safe, and is accepted further; nothing "
            "is processed until workers are started."
        )
    elif unserved:
        names = ", ".join(f"“{name}”" for name in sorted(unserved))
        found.append(
            f"No worker serves {names}: start one. Until then its work waits, and what was sent to "
            "an agent fails and is tried again."
        )
    return found


def _needed_queues() -> set[str]:
    statuses = {queues.STATUS_PREFIX + name for name in registry.receivers}
    return {*queues.ANSWERS, *registry.agents, *statuses}
