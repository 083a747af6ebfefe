"""Where a task's time went: a bar for each attempt and each wait, as plain numbers for an SVG.

Nothing depends on the present moment: a bar of an attempt in flight reaches to its deadline. So
the drawing only changes when something happened.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ...queries.task import StepDetail, TaskDetail
from ..durations import format_duration
from .chart import second_ticks

WIDTH = 1000.0  # units of the drawing; it is scaled to the page
LABEL = 200.0  # of them, for the steps' names
ROW = 30
EDGE = 30.0  # so near to the end, a tick's label lies before it
THINNEST = 3.0  # a bar stays visible however short it was


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A stretch of time; `kind` is an outcome, "flight" or "wait", and picks the colour."""

    x: str
    width: str
    y: int
    kind: str
    title: str


@dataclass(frozen=True, kw_only=True)
class StepBars:
    """A step's bars."""

    name: str
    y: int
    bars: Sequence[Bar]


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A place on the time axis; `anchor` is how its label lies to it."""

    x: str
    label: str
    anchor: str


@dataclass(frozen=True, kw_only=True)
class Waterfall:
    """The drawing, with the ticks of its time axis."""

    width: int
    height: int
    rows: Sequence[StepBars]
    ticks: Sequence[Tick]


@dataclass(frozen=True, kw_only=True)
class _Scale:
    start: datetime
    seconds: float

    def x(self, moment: datetime) -> float:
        """Return where a moment lies, inside the drawing in any case."""
        share = (moment - self.start).total_seconds() / self.seconds
        return LABEL + (WIDTH - LABEL) * min(1.0, max(0.0, share))


def waterfall(detail: TaskDetail) -> Waterfall | None:
    """Return the drawing of a task, or None as long as there is nothing to draw."""
    moments = [moment for step in detail.steps for moment in _ends(step)]
    if not moments:
        return None
    start = detail.task.created_at
    seconds = max(0.001, (max(moments) - start).total_seconds())
    scale = _Scale(start=start, seconds=seconds)
    rows = [
        StepBars(
            name=step.step.label, y=index * ROW + ROW, bars=_bars(step, scale, index * ROW + ROW)
        )
        for index, step in enumerate(detail.steps)
    ]
    return Waterfall(
        width=int(WIDTH),
        height=(len(rows) + 1) * ROW,
        rows=rows,
        ticks=_ticks(seconds),
    )


def _ticks(seconds: float) -> list[Tick]:
    """Return the round lengths of time that lie inside the drawing."""
    ticks = []
    for second in second_ticks(seconds):
        x = LABEL + (WIDTH - LABEL) * second / seconds
        if x < WIDTH + 0.1:
            anchor = "end" if x > WIDTH - EDGE else "middle"
            ticks.append(Tick(x=f"{x:.1f}", label=format_duration(second), anchor=anchor))
    return ticks


def _ends(detail: StepDetail) -> list[datetime]:
    ends = [attempt.ended_at for attempt in detail.attempts]
    step = detail.step
    if detail.at_work and step.complete_by:
        ends.append(step.complete_by)
    if step.run_after:
        ends.append(step.run_after)
    return ends


def _bars(detail: StepDetail, scale: _Scale, y: int) -> list[Bar]:
    bars = [
        _bar(scale, y, attempt.dispatched_at, attempt.ended_at, attempt.outcome,
             f"attempt {attempt.number}: {attempt.outcome}")
        for attempt in detail.attempts
    ]  # fmt: skip
    step = detail.step
    if detail.at_work and step.dispatched_at and step.complete_by:
        title = f"attempt {step.attempt}: processing, until its deadline"
        bars.append(_bar(scale, y, step.dispatched_at, step.complete_by, "flight", title))
    if step.run_after and detail.attempts:
        ended = detail.attempts[-1].ended_at
        bars.append(_bar(scale, y, ended, step.run_after, "wait", "waits for its retry"))
    return bars


def _bar(scale: _Scale, y: int, start: datetime, end: datetime, kind: str, title: str) -> Bar:
    left = min(scale.x(start), WIDTH - THINNEST)
    width = max(THINNEST, scale.x(end) - left)
    return Bar(
        x=f"{left:.1f}",
        width=f"{width:.1f}",
        y=y,
        kind=kind,
        title=f"{title}, {format_duration((end - start) / timedelta(seconds=1))}",
    )
