"""Totals that only rise through a day, for rates over any time: from the roll-ups of two hours.

Roll-ups are kept for some days, so a sum over all of them would fall. These begin again at zero at midnight,
UTC, which a reader of counters takes for a restart. What happens in the last seconds before is in no total.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate

from ... import registry
from ...models import StepRollUp, TaskRollUp
from ...models.rollup import Span
from ...states import Direction
from ..statistics.histogram import Buckets, merged

TASKS = ("created", "processed", "errors", "undone")
ATTEMPTS = ("done", "failed", "rejected")
Key = tuple[str, ...]


@dataclass(kw_only=True)
class Total:
    """Totals since midnight: counts by kind, and durations of successes."""

    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    took: list[Buckets] = field(default_factory=list)

    def below_each(self, buckets: Sequence[int]) -> list[int]:
        """Return how many were shorter than the bound of each of these buckets of `histogram`."""
        below = [0, *accumulate(merged(self.took))]
        return [below[bucket + 1] for bucket in buckets]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Tasks by workflow; attempts by workflow, step, direction and agent."""

    tasks: Mapping[Key, Total]
    attempts: Mapping[Key, Total]


def totals(now: datetime) -> Totals:
    """Return totals since midnight: at most twelve rows for each step and workflow."""
    tasks, attempts = _at_zero()
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    today = {"span": Span.TWO_HOURS, "start__gte": midnight}
    for row in TaskRollUp.objects.filter(**today):
        _add(tasks[row.workflow,], TASKS, row)
    for attempted in StepRollUp.objects.filter(**today):
        key = (attempted.workflow, attempted.step, attempted.direction, attempted.agent)
        _add(attempts[key], ATTEMPTS, attempted)
    return Totals(tasks=tasks, attempts=attempts)


def _at_zero() -> tuple[dict[Key, Total], dict[Key, Total]]:
    """Return totals of all that is declared: a counter that appears with a value has no rate."""
    tasks: dict[Key, Total] = defaultdict(Total)
    attempts: dict[Key, Total] = defaultdict(Total)
    for name, workflow in registry.workflows.items():
        tasks[name,].counts.update(dict.fromkeys(TASKS, 0))
        for step in workflow.steps:
            directions = [Direction.DO, *([Direction.UNDO] if step.undo else [])]
            for direction in directions:
                key = (name, step.name, direction.value, step.agent)
                attempts[key].counts.update(dict.fromkeys(ATTEMPTS, 0))
    return tasks, attempts


def _add(total: Total, names: tuple[str, ...], row: TaskRollUp | StepRollUp) -> None:
    for name in names:
        total.counts[name] += getattr(row, name)
    total.took.append(row.took)
