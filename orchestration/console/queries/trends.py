"""Trends over an hour, a day or a week, from the roll-ups: four queries, a few hundred rows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ...models import GateRollUp, Policy, StepRollUp, TaskRollUp
from ...models.rollup import Span
from ..statistics.histogram import Buckets, merged, percentile

MOST = 500  # steps of all workflows that a table shows


@dataclass(frozen=True, kw_only=True)
class Range:
    """A stretch of time up to now: `count` roll-ups of one span."""

    key: str
    label: str
    past: str  # in words that follow "the last"
    span: Span
    count: int

    @property
    def per(self) -> str:
        """Return what one roll-up sums up, in words."""
        return {60: "minute", 900: "15 minutes", 7200: "2 hours"}[self.span]


RANGES = {
    chosen.key: chosen
    for chosen in (
        Range(key="1h", label="1 hour", past="hour", span=Span.MINUTE, count=60),
        Range(key="24h", label="24 hours", past="24 hours", span=Span.QUARTER, count=96),
        Range(key="7d", label="7 days", past="7 days", span=Span.TWO_HOURS, count=84),
    )
}
DEFAULT_RANGE = "1h"


@dataclass(kw_only=True)
class TaskPoint:
    """What became of tasks within one span; times in seconds, None where none was processed."""

    created: int = 0
    processed: int = 0
    errors: int = 0
    undone: int = 0
    failed: int = 0  # attempts, of all steps
    rejected: int = 0
    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, kw_only=True)
class StepTrend:
    """One step of a workflow over the whole range; `failures` are those of each span."""

    workflow: str
    step: str
    direction: str
    agent: str
    done: int
    failed: int
    rejected: int
    p50: float | None
    p95: float | None
    failures: Sequence[int]

    @property
    def attempts(self) -> int:
        """Return how many attempts ended."""
        return self.done + self.failed + self.rejected

    @property
    def share(self) -> float:
        """Return the share of them that did not succeed, in percent."""
        return 100.0 * (self.failed + self.rejected) / self.attempts if self.attempts else 0.0


@dataclass(frozen=True, kw_only=True)
class GatePoint:
    """How full a gate was within one span, and how long its oldest step waited; the worst of it."""

    in_flight: int
    room: int
    waiting: int
    oldest: float
    shut: bool

    @property
    def full(self) -> float | None:
        """Return how much of its room was taken, in percent; None where there was none."""
        return min(100.0, 100.0 * self.in_flight / self.room) if self.room else None


@dataclass(frozen=True, kw_only=True)
class Trends:
    """All that the charts of a range show: one point for each of `starts`."""

    range: Range
    starts: Sequence[datetime]
    tasks: Sequence[TaskPoint]
    steps: Sequence[StepTrend]
    gates: dict[str, Sequence[GatePoint | None]]
    added: Sequence[str]  # all agents there ever were, the first one first
    p50: float | None
    p95: float | None

    @property
    def processed(self) -> int:
        """Return how many tasks were processed in the whole range."""
        return sum(point.processed for point in self.tasks)


@dataclass(kw_only=True)
class _Step:
    done: int = 0
    failed: int = 0
    rejected: int = 0
    took: list[Buckets] = field(default_factory=list)
    failures: dict[datetime, int] = field(default_factory=lambda: defaultdict(int))


def starts_of(chosen: Range, now: datetime) -> list[datetime]:
    """Return when each span of a range begins; the last one is the present one."""
    last = int(now.timestamp()) // chosen.span * chosen.span
    first = datetime.fromtimestamp(last, UTC) - timedelta(seconds=chosen.span * (chosen.count - 1))
    return [first + timedelta(seconds=chosen.span * place) for place in range(chosen.count)]


def trends(key: str, now: datetime) -> Trends:
    """Return the trends of the range of that name (or the shortest) up to `now`."""
    chosen = RANGES.get(key) or RANGES[DEFAULT_RANGE]
    starts = starts_of(chosen, now)
    points = {start: TaskPoint() for start in starts}
    took = _tasks(chosen, starts, points)
    return Trends(
        range=chosen,
        starts=starts,
        tasks=list(points.values()),
        steps=_steps(chosen, starts, points),
        gates=_gates(chosen, starts),
        added=_added(),
        p50=percentile(took, 0.5),
        p95=percentile(took, 0.95),
    )


def _tasks(chosen: Range, starts: Sequence[datetime], points: dict[datetime, TaskPoint]) -> Buckets:
    """Add up all workflows, along task_rollup_once; return how long the tasks took."""
    took: dict[datetime, list[Buckets]] = defaultdict(list)
    for row in TaskRollUp.objects.filter(span=chosen.span, start__gte=starts[0]):
        if point := points.get(row.start):
            point.created += row.created
            point.processed += row.processed
            point.errors += row.errors
            point.undone += row.undone
            took[row.start].append(row.took)
    for start, parts in took.items():
        counts = merged(parts)
        points[start].p50, points[start].p95 = percentile(counts, 0.5), percentile(counts, 0.95)
    return merged(part for parts in took.values() for part in parts)


def _steps(
    chosen: Range, starts: Sequence[datetime], points: dict[datetime, TaskPoint]
) -> list[StepTrend]:
    """Add up each step, along step_rollup_once; add its failures to the points."""
    by_step: dict[tuple[str, str, str, str], _Step] = defaultdict(_Step)
    for row in StepRollUp.objects.filter(span=chosen.span, start__gte=starts[0]):
        if (point := points.get(row.start)) is None:
            continue
        step = by_step[row.workflow, row.step, row.direction, row.agent]
        step.done += row.done
        step.failed += row.failed
        step.rejected += row.rejected
        step.took.append(row.took)
        step.failures[row.start] += row.failed + row.rejected
        point.failed += row.failed
        point.rejected += row.rejected
    return [
        StepTrend(
            workflow=workflow,
            step=name,
            direction=direction,
            agent=agent,
            done=step.done,
            failed=step.failed,
            rejected=step.rejected,
            p50=percentile(counts, 0.5),
            p95=percentile(counts, 0.95),
            failures=[step.failures.get(start, 0) for start in starts],
        )
        for (workflow, name, direction, agent), step in sorted(by_step.items())[:MOST]
        for counts in [merged(step.took)]
    ]


def _gates(chosen: Range, starts: Sequence[datetime]) -> dict[str, Sequence[GatePoint | None]]:
    """Return each gate's points, along gate_rollup_once; None where nothing was sampled."""
    by_agent: dict[str, dict[datetime, GatePoint]] = defaultdict(dict)
    for row in GateRollUp.objects.filter(span=chosen.span, start__gte=starts[0]):
        by_agent[row.agent][row.start] = GatePoint(
            in_flight=row.in_flight,
            room=row.room,
            waiting=row.waiting,
            oldest=row.oldest,
            shut=row.blocked_samples > 0,
        )
    return {
        agent: [seen.get(start) for start in starts] for agent, seen in sorted(by_agent.items())
    }


def _added() -> list[str]:
    """Return the agents in the order in which they were added, by the history of their policies."""
    made = Policy.history.filter(history_type="+").order_by("history_id")
    return list(dict.fromkeys(made.values_list("agent", flat=True)))
