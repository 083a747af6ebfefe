"""Where a task's time went: a bar for each attempt and each wait, as plain numbers for an SVG.

Nothing depends on the present moment: a bar of an attempt in flight reaches to its deadline. So
the drawing only changes when something happened. A time in which no attempt ran is folded if it is longer
than all attempts together: otherwise a task that was resubmitted late would be two thin lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from ..durations import format_duration
from ..queries.task import StepDetail, TaskDetail
from .chart import second_ticks

WIDTH = 1000.0  # units of the drawing; it is scaled to the page
LABEL = 200.0  # of them, for the steps' names
ROW = 30
EDGE = 30.0  # so near to the end, a tick's label lies before it
THINNEST = 3.0  # a bar stays visible however short it was
NUMBERED = 14.0  # a bar so wide has its attempt's number in it
FOLD = 26.0  # how wide a fold is
IDLE_S = 1.0  # no shorter time is folded
MOST_FOLDS = 12  # the longest ones
APART = 96.0  # between the labels of a folded axis

Stretch = tuple[float, float]  # seconds since the task was created


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A stretch of time; `kind` is an outcome, "flight" or "wait", and picks the colour.

    `attempt` is the number of an attempt that has ended: its row in the table is linked to. `middle` is
    where that number stands in the bar, if there is room.
    """

    x: str
    width: str
    y: int
    kind: str
    title: str
    attempt: int | None = None
    middle: str = ""


@dataclass(frozen=True, kw_only=True)
class StepBars:
    """A step's bars; `step` is its id."""

    step: int
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
class Fold:
    """A time without an attempt that is drawn narrow; `label` is how long it was."""

    x: str
    width: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Waterfall:
    """The drawing, with the ticks of its time axis, and the folds in it."""

    width: int
    height: int
    rows: Sequence[StepBars]
    ticks: Sequence[Tick]
    folds: Sequence[Fold] = ()


@dataclass(frozen=True, kw_only=True)
class _Scale:
    start: datetime
    seconds: float
    folded: Sequence[Stretch] = ()

    @property
    def _unit(self) -> float:
        """Return how wide a second is."""
        hidden = sum(end - begin for begin, end in self.folded)
        return (WIDTH - LABEL - FOLD * len(self.folded)) / max(0.001, self.seconds - hidden)

    def x(self, moment: datetime) -> float:
        """Return where a moment lies, inside the drawing in any case."""
        return self.place((moment - self.start).total_seconds())

    def place(self, second: float) -> float:
        """Return where a second since the start lies; within a fold, in proportion."""
        second, x, before = min(self.seconds, max(0.0, second)), LABEL, 0.0
        for begin, end in self.folded:
            if second <= begin:
                break
            x += (begin - before) * self._unit + FOLD * min(1.0, (second - begin) / (end - begin))
            before = end
        return min(WIDTH, x + max(0.0, second - before) * self._unit)


def waterfall(detail: TaskDetail) -> Waterfall | None:
    """Return the drawing of a task, or None as long as there is nothing to draw."""
    moments = [moment for step in detail.steps for moment in _ends(step)]
    if not moments:
        return None
    start = detail.task.created_at
    seconds = max(0.001, (max(moments) - start).total_seconds())
    scale = _Scale(start=start, seconds=seconds, folded=_idle(detail, start, seconds))
    rows = [
        StepBars(
            step=step.step.id,
            name=step.step.label,
            y=index * ROW + ROW,
            bars=_bars(step, scale, index * ROW + ROW),
        )
        for index, step in enumerate(detail.steps)
    ]
    return Waterfall(
        width=int(WIDTH),
        height=(len(rows) + 1) * ROW,
        rows=rows,
        ticks=_folded_ticks(scale) if scale.folded else _ticks(seconds),
        folds=[
            Fold(
                x=f"{scale.place(begin):.1f}",
                width=f"{FOLD:.1f}",
                label=format_duration(end - begin),
            )
            for begin, end in scale.folded
        ],
    )


def _idle(detail: TaskDetail, start: datetime, seconds: float) -> list[Stretch]:
    """Return the times without an attempt that are longer than all attempts together."""
    busy: list[Stretch] = []
    for begin, end in sorted(
        ((begun - start).total_seconds(), (ended - start).total_seconds())
        for step in detail.steps
        for begun, ended in _at_work(step)
    ):
        if busy and begin <= busy[-1][1]:
            busy[-1] = (busy[-1][0], max(busy[-1][1], end))
        else:
            busy.append((max(0.0, begin), max(0.0, end)))
    least = max(IDLE_S, sum(end - begin for begin, end in busy))
    edges = [(0.0, 0.0), *busy, (seconds, seconds)]
    gaps = [(end, begin) for (_, end), (begin, _) in pairwise(edges)]
    folds = sorted((gap for gap in gaps if gap[1] - gap[0] > least), key=_length)[-MOST_FOLDS:]
    return sorted(folds)


def _length(stretch: Stretch) -> float:
    return stretch[1] - stretch[0]


def _at_work(detail: StepDetail) -> list[tuple[datetime, datetime]]:
    spans = [(attempt.dispatched_at, attempt.ended_at) for attempt in detail.attempts]
    step = detail.step
    if detail.at_work and step.dispatched_at and step.complete_by:
        spans.append((step.dispatched_at, step.complete_by))
    return spans


def _ticks(seconds: float) -> list[Tick]:
    """Return the round lengths of time that lie inside the drawing."""
    ticks = []
    for second in second_ticks(seconds):
        x = LABEL + (WIDTH - LABEL) * second / seconds
        if x < WIDTH + 0.1:
            ticks.append(_tick(x, second))
    return ticks


def _folded_ticks(scale: _Scale) -> list[Tick]:
    """Return where the drawing begins, and goes on after a fold, as far as there is room."""
    seconds = [0.0, *(end for _, end in scale.folded)]
    ticks, last = [], -APART
    for second in seconds:
        if (x := scale.place(second)) - last >= APART:
            ticks.append(_tick(x, second))
            last = x
    return ticks


def _tick(x: float, second: float) -> Tick:
    anchor = "end" if x > WIDTH - EDGE else "middle"
    return Tick(x=f"{x:.1f}", label=format_duration(second), anchor=anchor)


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
             f"attempt {attempt.number}: {attempt.outcome}", attempt.number)
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


def _bar(
    scale: _Scale,
    y: int,
    start: datetime,
    end: datetime,
    kind: str,
    title: str,
    attempt: int | None = None,
) -> Bar:
    left = min(scale.x(start), WIDTH - THINNEST)
    width = max(THINNEST, scale.x(end) - left)
    return Bar(
        x=f"{left:.1f}",
        width=f"{width:.1f}",
        y=y,
        kind=kind,
        title=f"{title}, {format_duration((end - start) / timedelta(seconds=1))}",
        attempt=attempt,
        middle=f"{left + width / 2:.1f}" if attempt and width >= NUMBERED else "",
    )
