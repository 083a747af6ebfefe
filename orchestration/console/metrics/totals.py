"""Counters of tasks and attempts, for `rate()`: from the roll-ups, so that no turn pays for them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from prometheus_client.core import Metric

from ..queries import totals
from ..queries.totals import Total
from ..statistics.histogram import BOUNDS, STEPS
from .families import Buckets, counter, histogram

TODAY = "since midnight UTC"
# Upper bounds, each twice the one before: 0.128 s to 70 minutes, and 8 ms to 131 s
TASK_BUCKETS = range(7 * STEPS, 23 * STEPS, STEPS)
ATTEMPT_BUCKETS = range(3 * STEPS, 18 * STEPS, STEPS)


def metrics(now: datetime) -> Iterator[Metric]:
    """Yield what happened, in two queries."""
    sums = totals.totals(now)
    yield counter(
        "task_changes", f"Tasks {TODAY}; errors: steps that stopped", ["workflow", "what"],
        of=[
            ([*key, what], total.counts[what])
            for key, total in sums.tasks.items() for what in totals.TASKS
        ],
    )  # fmt: skip
    yield histogram(
        "task_seconds", f"From creation to the end, of those processed {TODAY}", ["workflow"],
        of=[([*key], _buckets([total], TASK_BUCKETS)) for key, total in sums.tasks.items()],
    )  # fmt: skip
    yield counter(
        "attempts", f"Attempts that ended {TODAY}",
        ["workflow", "step", "direction", "agent", "outcome"],
        of=[
            ([*key, outcome], total.counts[outcome])
            for key, total in sums.attempts.items() for outcome in totals.ATTEMPTS
        ],
    )  # fmt: skip
    agents: dict[str, list[Total]] = defaultdict(list)
    for (*_, agent), total in sums.attempts.items():
        agents[agent].append(total)
    yield histogram(
        "attempt_seconds", f"From dispatch to reply, of those done {TODAY}", ["agent"],
        of=[([agent], _buckets(several, ATTEMPT_BUCKETS)) for agent, several in agents.items()],
    )  # fmt: skip


def _buckets(several: Sequence[Total], places: Sequence[int]) -> Buckets:
    total = Total(took=[took for part in several for took in part.took])
    counts = total.below_each([*places, len(BOUNDS)])
    names = [*(str(round(BOUNDS[place], 3)) for place in places), "+Inf"]
    return list(zip(names, map(float, counts), strict=True))
