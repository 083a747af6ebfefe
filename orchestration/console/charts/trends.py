"""Which charts the overview shows: what happened, as series of values."""

from dataclasses import dataclass

from django.utils import timezone

from ..durations import format_duration
from ..queries.trends import StepTrend, Trends
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

    def series(name: str, kind: str, field: str = "") -> Series:
        return Series(
            name=name, kind=kind, values=[getattr(point, field or name) for point in points]
        )

    def of_gates(field: str) -> list[Series]:
        return [
            Series(
                name=agent,
                kind=shade(seen, agent),
                values=[getattr(point, field) if point else None for point in gate],
            )
            for agent, gate in seen.gates.items()
        ]

    return [
        chart(
            f"Tasks per {seen.range.per}",
            moments,
            COUNTS,
            stacked=[
                series("processed", "done"),
                series("undone", "undone"),
                series("in error", "error", "errors"),
            ],
            lines=[series("created", "created")],
            wide=True,
        ),
        chart(
            "Duration of tasks",
            moments,
            LENGTHS,
            lines=[series("p95", "p95"), series("p50", "p50")],
        ),
        chart(
            f"Failed attempts per {seen.range.per}",
            moments,
            COUNTS,
            stacked=[series("failed", "failed"), series("rejected", "error")],
        ),
        chart("Oldest waiting step", moments, LENGTHS, lines=of_gates("oldest")),
        chart("Window in use", moments, SHARES, lines=of_gates("full")),
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
