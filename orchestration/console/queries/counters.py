"""Counts, open alerts and running operations, for the overview."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Count

from ...database import sql
from ...models import Alert, Operation
from ...models.operation import OperationState

SHOWN = 6  # of each list: the rest is a link away
LIVE = (
    OperationState.APPROVAL,
    OperationState.WAITING,
    OperationState.RUNNING,
    OperationState.PAUSED,
)

# Each is counted no further than the cap, along an index that holds exactly what is counted:
# task_by_state, step_retrying, task_late, and the handful of gates.
COUNTS = """
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM orchestration_task
        WHERE state = 'error' LIMIT %(cap)s) AS counted),
    (SELECT count(*) FROM (SELECT 1 FROM orchestration_step
        WHERE process_state = 'pending' AND run_after IS NOT NULL AND attempt > 0 LIMIT %(cap)s) AS counted),
    (SELECT count(*) FROM (SELECT 1 FROM orchestration_task
        WHERE overdue AND state IN ('pending', 'processing', 'undoing') LIMIT %(cap)s) AS counted),
    (SELECT count(*) FROM (SELECT 1 FROM orchestration_task
        WHERE state = 'undoing' LIMIT %(cap)s) AS counted),
    (SELECT count(*) FROM (SELECT 1 FROM orchestration_task
        WHERE state IN ('pending', 'processing') LIMIT %(cap)s) AS counted)
"""


# Those that are due first, along wait_due; so what is late is counted in any case. What is not awaited waits
# for its time.
WAITS = """
SELECT t.workflow, s.name, count(w.awaited_at), count(*) FILTER (
    WHERE w.ends_by < (SELECT clock_timestamp())), count(*) - count(w.awaited_at)
FROM (SELECT step_id, awaited_at, ends_by FROM orchestration_wait WHERE due_at IS NOT NULL
    ORDER BY due_at LIMIT %(most)s) AS w
JOIN orchestration_step s ON s.id = w.step_id JOIN orchestration_task t ON t.id = s.task_id
GROUP BY t.workflow, s.name ORDER BY 1, 2
"""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many tasks or steps are in trouble, each no further than the cap."""

    errors: int
    retrying: int
    overdue: int
    undoing: int
    under_way: int


class WaitCounts(NamedTuple):
    """How many steps await a result, how many of them are late, and how many wait for their time."""

    awaiting: int
    late: int
    delayed: int


@dataclass(frozen=True, kw_only=True)
class Running:
    """An operation, and how many of its items have their end."""

    operation: Operation
    settled: int


def counts(cap: int) -> Counts:
    """Count what is in trouble."""
    errors, retrying, overdue, undoing, under_way = sql.run(COUNTS, {"cap": cap + 1})[0]
    return Counts(
        errors=errors, retrying=retrying, overdue=overdue, undoing=undoing, under_way=under_way
    )


def waits(most: int) -> dict[tuple[str, str], WaitCounts]:
    """Return what steps wait for, of the waits that are due first, by workflow and step."""
    rows = sql.run(WAITS, {"most": most})
    return {(workflow, step): WaitCounts(*counts) for workflow, step, *counts in rows}


def open_alerts() -> dict[str, int]:
    """Return how many alerts are open, by severity."""
    by_severity = Alert.objects.filter(closed_at=None).values_list("severity").annotate(Count("id"))
    return dict(by_severity.order_by())


def operations() -> Sequence[Running]:
    """Return the operations that are not at their end, the newest first, along operation_open."""
    live = Operation.objects.filter(state__in=LIVE, ended_at=None).defer("selection", "result")
    return [
        Running(operation=operation, settled=operation.items - operation.waiting - operation.sent)
        for operation in live.order_by("-id")[:SHOWN]
    ]
