"""Which charts the overview shows: what happened, as series of values."""

from dataclasses import dataclass

from django.utils import timezone
from django.utils.safestring import SafeString

from ..queries.trends import StepTrend, Trends
from .charts import COUNTS, LENGTHS, SHARES, Chart, Series, chart, spark, write_seconds
from .drawing import sparks

SHADES = 6  # agents that have a colour of their own; more of them share


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """A step's line of the table: its figures, and the course of its failures."""

    trend: StepTrend
    p50: str
    p95: str
    failures: SafeString


def charts(seen: Trends) -> list[Chart]:
    """Return the charts of a range, the most telling first."""
    moments = [timezone.localtime(start) for start in seen.starts]
    points = seen.tasks
    return [
        chart(
            f"Tasks per {seen.range.per}",
            moments,
            COUNTS,
            stacked=[
                Series(name="processed", kind="done", values=[one.processed for one in points]),
                Series(name="undone", kind="undone", values=[one.undone for one in points]),
                Series(name="in error", kind="error", values=[one.errors for one in points]),
            ],
            lines=[Series(name="created", kind="created", values=[one.created for one in points])],
            wide=True,
        ),
        chart(
            "From creation to the end",
            moments,
            LENGTHS,
            lines=[
                Series(name="p95", kind="p95", values=[one.p95 for one in points]),
                Series(name="p50", kind="p50", values=[one.p50 for one in points]),
            ],
        ),
        chart(
            f"Failed attempts per {seen.range.per}",
            moments,
            COUNTS,
            stacked=[
                Series(name="failed", kind="failed", values=[one.failed for one in points]),
                Series(name="refused", kind="error", values=[one.rejected for one in points]),
            ],
        ),
        chart(
            "Oldest step that waits",
            moments,
            LENGTHS,
            lines=[
                Series(
                    name=agent,
                    kind=f"shade-{place % SHADES}",
                    values=[one.oldest if one else None for one in gate],
                )
                for place, (agent, gate) in enumerate(seen.gates.items())
            ],
        ),
        chart(
            "How full the gates are",
            moments,
            SHARES,
            lines=[
                Series(
                    name=agent,
                    kind=f"shade-{place % SHADES}",
                    values=[one.full if one else None for one in gate],
                )
                for place, (agent, gate) in enumerate(seen.gates.items())
            ],
        ),
    ]


def step_rows(seen: Trends) -> list[StepRow]:
    """Return the steps' lines, those that fail most first."""
    worst_first = sorted(seen.steps, key=lambda one: (-one.share, one.workflow))
    return [
        StepRow(
            trend=one, p50=_said(one.p50), p95=_said(one.p95), failures=sparks(spark(one.failures))
        )
        for one in worst_first
    ]


def latency(seen: Trends) -> str:
    """Return how long tasks took over the whole range, in a few words."""
    return f"half within {_said(seen.p50)}, 95 % within {_said(seen.p95)}" if seen.p95 else ""


def _said(seconds: float | None) -> str:
    return "\N{EN DASH}" if seconds is None else write_seconds(seconds)
