"""Which charts the overview shows: what happened, as series of values."""

from dataclasses import dataclass

from django.utils import timezone

from ...queries.trends import StepTrend, Trends
from ..durations import format_duration
from .chart import COUNTS, LENGTHS, SHARES, Chart, Series, chart
from .sparkline import Sparkline, sparkline

SHADES = 12  # agents that have a colour of their own; further ones have a dashed line


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """A row of the table of steps: its figures, and the trend of its failures."""

    trend: StepTrend
    p50: str
    p95: str
    spark: Sparkline


def charts(seen: Trends) -> list[Chart]:
    """Return the charts of a range, the most important first."""
    moments = [timezone.localtime(start) for start in seen.starts]
    points = seen.tasks
    return [
        chart(
            f"Tasks per {seen.range.per}",
            moments,
            COUNTS,
            stacked=[
                Series(name="processed", kind="done", values=[point.processed for point in points]),
                Series(name="undone", kind="undone", values=[point.undone for point in points]),
                Series(name="in error", kind="error", values=[point.errors for point in points]),
            ],
            lines=[
                Series(name="created", kind="created", values=[point.created for point in points])
            ],
            wide=True,
        ),
        chart(
            "Duration of tasks",
            moments,
            LENGTHS,
            lines=[
                Series(name="p95", kind="p95", values=[point.p95 for point in points]),
                Series(name="p50", kind="p50", values=[point.p50 for point in points]),
            ],
        ),
        chart(
            f"Failed attempts per {seen.range.per}",
            moments,
            COUNTS,
            stacked=[
                Series(name="failed", kind="failed", values=[point.failed for point in points]),
                Series(name="rejected", kind="error", values=[point.rejected for point in points]),
            ],
        ),
        chart(
            "Oldest waiting step",
            moments,
            LENGTHS,
            lines=[
                Series(
                    name=agent,
                    kind=shade(seen, agent),
                    values=[point.oldest if point else None for point in gate],
                )
                for agent, gate in seen.gates.items()
            ],
        ),
        chart(
            "Window in use",
            moments,
            SHARES,
            lines=[
                Series(
                    name=agent,
                    kind=shade(seen, agent),
                    values=[point.full if point else None for point in gate],
                )
                for agent, gate in seen.gates.items()
            ],
        ),
    ]


def shade(seen: Trends, agent: str) -> str:
    """Return the colour of an agent: by when it was added, so another one does not change it."""
    known = seen.added.index(agent) if agent in seen.added else len(seen.added)
    return f"shade-{known % SHADES}" + (" again" if known >= SHADES else "")


def step_rows(seen: Trends) -> list[StepRow]:
    """Return the rows of the table of steps, those that fail most first."""
    worst_first = sorted(seen.steps, key=lambda step: (-step.share, step.workflow))
    return [
        StepRow(
            trend=step,
            p50=_written(step.p50),
            p95=_written(step.p95),
            spark=sparkline(step.failures, _failures(step, seen)),
        )
        for step in worst_first
    ]


def _failures(step: StepTrend, seen: Trends) -> str:
    failed = sum(step.failures)
    attempts = "attempt" if failed == 1 else "attempts"
    peak = f"at most {max(step.failures, default=0):,} per {seen.range.per}"
    return f"{failed:,} failed {attempts} in the last {seen.range.past}, {peak}"


def latency(seen: Trends) -> str:
    """Return the percentiles of the tasks' durations over the whole range."""
    return f"duration p50 {_written(seen.p50)}, p95 {_written(seen.p95)}" if seen.p95 else ""


def _written(seconds: float | None) -> str:
    return "\N{EN DASH}" if seconds is None else format_duration(seconds)
