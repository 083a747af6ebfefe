"""The problems of the system itself, and the counts that every page shows."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import QuerySet

from ... import conf
from ...cluster import leader_election
from ...database import sql
from ...database.capped_counts import CAP
from ...dead_letters import actions
from ...messaging import queue_depths, queue_names
from ...models import Alert, Incident, Operation, Task, Wait
from ...models.incident import IncidentState
from ...models.operation import OperationState
from ...states import TaskState

NO_LEADER = {
    leader_election.SUPERVISOR: "No supervisor leads: tasks are processed, but failed steps are neither "
    "retried nor reported. Start a supervisor.",
    leader_election.HOUSEKEEPER: "No housekeeper leads: tasks are processed, but bulk operations, incidents, "
    "statistics and alerts are not updated. Start a housekeeper.",
}
UNACKNOWLEDGED = (IncidentState.NEW, IncidentState.RETURNED)
DECIDED_BY_PERSON = (OperationState.APPROVAL, OperationState.PAUSED)
SLOW = 1.0  # seconds for a few small queries: more is felt on every page

MACHINERY = """
SELECT
    ARRAY(SELECT name FROM unnest(%(leases)s::text[]) AS needed (name)
        WHERE NOT EXISTS (SELECT 1 FROM orchestration_lease l WHERE l.name = needed.name
            AND greatest(expires_at, next_sweep_due) > (SELECT clock_timestamp()))),
    ARRAY(SELECT DISTINCT queue FROM orchestration_worker
        WHERE seen_at > (SELECT clock_timestamp()) - %(alive)s * interval '1 second'),
    EXISTS (SELECT 1 FROM orchestration_worker WHERE queue = ANY(%(needed)s)
        AND seen_at > (SELECT clock_timestamp()) - %(all_silent)s * interval '1 second')
"""


@dataclass(frozen=True, kw_only=True)
class Shell:
    """What every page shows: what waits for a person, by section, and the problems of the system."""

    counts: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)  # a sentence by its code

    @property
    def attention(self) -> int:
        """Return how many tasks are in error."""
        return self.counts.get("tasks", 0)


def shell() -> Shell:
    """Read what every page shows: seven small queries for any number of tasks."""
    begun = time.monotonic()
    counts = {
        "overview": _counted(
            Alert.objects.filter(closed_at=None, incident=None, acknowledged_at=None)
        ),
        "tasks": _counted(Task.objects.filter(state=TaskState.ERROR)),
        "incidents": _counted(Incident.objects.filter(open_tasks__gt=0, state__in=UNACKNOWLEDGED)),
        "operations": _counted(Operation.objects.filter(state__in=DECIDED_BY_PERSON)),
        "dead_letters": actions.waiting(CAP + 1),
        "decisions": _counted(Wait.objects.exclude(person="")),
    }
    needed = set(queue_names.declared())
    parameters = {
        "leases": list(leader_election.NAMES),
        "alive": conf.WORKER_DEAD_AFTER_S,
        "all_silent": conf.NO_WORKERS_AFTER_S,
        "needed": sorted(needed),
    }
    leaderless, served, manned = sql.run(MACHINERY, parameters)[0]
    slow = time.monotonic() - begun > SLOW
    problems = _problems(
        leaderless=leaderless, unserved=needed - set(served), deserted=bool(needed) and not manned
    )
    if slow:
        problems["database"] = (
            "The database answers slowly: processing and these pages take longer."
        )
    return Shell(counts=counts, problems=problems)


def _counted(
    rows: "QuerySet[Alert] | QuerySet[Task] | QuerySet[Incident] | QuerySet[Operation] | QuerySet[Wait]",
) -> int:
    return rows.order_by()[: CAP + 1].count()


def _problems(*, leaderless: Sequence[str], unserved: set[str], deserted: bool) -> dict[str, str]:
    """Return the problems of the system, each with its consequences in a sentence."""
    problems = {}
    if not queue_depths.answers():
        problems["redis"] = (
            "Redis is down: submissions are still accepted, accepted tasks are safe, and "
            "nothing is processed until Redis is back."
        )
    problems |= {name: NO_LEADER[name] for name in leaderless}
    if deserted:
        problems["workers"] = (
            "No worker is running: submissions are still accepted, accepted tasks are safe, "
            "and nothing is processed until workers are started."
        )
    elif unserved:
        names = ", ".join(f"“{name}”" for name in sorted(unserved))
        problems["queues"] = (
            f"No worker serves {names}. Start one: until then the work of the queue waits, and "
            "requests already sent fail and are retried."
        )
    return problems
