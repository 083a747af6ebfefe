"""Charts as plain numbers for an SVG: columns and lines over time, with round ticks and a table.

Pure: a chart is made from values at hand. Colours are classes (`kind`), so that they follow the
theme; sizes are units of the drawing, which is scaled to the page.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..durations import format_duration

HEIGHT = 190.0
NARROW, WIDE = 480.0, 980.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 8.0, 10.0, 24.0  # around the plot, for the labels
HALF_LABEL = 24.0  # of the widest label of the time, on a narrow page
GAP = 0.2  # of a column's place, between it and the next
TICKS = 4  # about as many steps as an axis has

SECONDS = (  # `TICKS` of none need two units, for which an axis has no room
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15),
    *(60, 120, 300, 600, 3600, 7200, 10_800, 21_600, 86_400),
)
CLOCK = (300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800)


@dataclass(frozen=True, kw_only=True)
class Series:
    """Values over time under one name; None is a gap. `kind` picks the colour."""

    name: str
    kind: str
    values: Sequence[float | None]


@dataclass(frozen=True, kw_only=True)
class Block:
    """One part of a column."""

    kind: str
    y: str
    height: str


@dataclass(frozen=True, kw_only=True)
class Column:
    """What happened within one span: blocks upon each other, and the words that say so."""

    x: str
    width: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, kw_only=True)
class ChartLine:
    """A line, in as many pieces as it has gaps; a piece of one point is a dot."""

    kind: str
    pieces: Sequence[str]
    dots: Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing, and the same as a table: `rows` has a line for each span in which something was."""

    name: str
    title: str
    width: int
    height: int
    floor: str
    left: str
    right: str
    across: Sequence[tuple[str, str]]  # y, label
    along: Sequence[tuple[str, str]]  # x, label
    columns: Sequence[Column]
    lines: Sequence[ChartLine]
    legend: Sequence[Series]
    rows: Sequence[tuple[datetime, Sequence[str]]]

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to draw."""
        return not self.rows


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What is measured: how a value is written, and which round values stand at the axis."""

    write: Callable[[float], str]
    ticks: Callable[[float], list[float]]


def chart(
    title: str,
    moments: Sequence[datetime],
    scale: Scale,
    *,
    stacked: Sequence[Series] = (),
    lines: Sequence[Series] = (),
    wide: bool = False,
) -> Chart:
    """Draw `stacked` series as columns and `lines` over them; `moments` are as people read them."""
    width, write = WIDE if wide else NARROW, scale.write
    series, places = [*lines, *stacked], range(len(moments))
    sums = [sum(part.values[place] or 0 for part in stacked) for place in places]
    ticks = scale.ticks(max([0.0, *sums, *(value or 0 for line in lines for value in line.values)]))
    plot = _Plot(width=width, top=ticks[-1], places=len(moments))
    return Chart(
        name="-".join(title.lower().split()),
        title=title,
        width=int(width),
        height=int(HEIGHT),
        floor=f"{HEIGHT - BOTTOM:.1f}",
        left=f"{LEFT:.1f}",
        right=f"{width - RIGHT:.1f}",
        across=[(f"{plot.y(value):.1f}", write(value)) for value in ticks],
        along=[
            (f"{plot.edge(place):.1f}", label)
            for place, label in clock_ticks(moments, 9 if wide else 5)
            if plot.edge(place) <= width - HALF_LABEL
        ],
        columns=[
            _column(plot, place, moments[place], stacked, series, write)
            for place in places
            if any(curve.values[place] is not None for curve in series)
        ],
        lines=[_line(plot, line) for line in lines],
        legend=series,
        rows=[
            (moments[place], [_labelled(curve.values[place], write) for curve in series])
            for place in places
            if any(curve.values[place] for curve in series)
        ],
    )


@dataclass(frozen=True, kw_only=True)
class _Plot:
    width: float
    top: float
    places: int

    @property
    def place(self) -> float:
        """Return how wide the place of one span is."""
        return (self.width - LEFT - RIGHT) / self.places

    def edge(self, place: int) -> float:
        """Return where a span begins."""
        return LEFT + self.place * place

    def y(self, value: float) -> float:
        """Return how high a value lies."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(1.0, value / self.top)


def _column(
    plot: _Plot,
    place: int,
    moment: datetime,
    stacked: Sequence[Series],
    series: Sequence[Series],
    write: Callable[[float], str],
) -> Column:
    blocks, below = [], 0.0
    for part in stacked:
        if value := part.values[place]:
            low, high = plot.y(below), plot.y(below + value)
            blocks.append(Block(kind=part.kind, y=f"{high:.1f}", height=f"{low - high:.1f}"))
            below += value
    values = ", ".join(
        f"{curve.name} {write(value)}"
        for curve in series
        if (value := curve.values[place]) is not None and (value or len(series) == 1)
    )
    return Column(
        x=f"{plot.edge(place) + plot.place * GAP / 2:.1f}",
        width=f"{plot.place * (1 - GAP):.1f}",
        title=f"{moment:%d %b %H:%M}: {values or 'no data'}",
        blocks=blocks,
    )


def _line(plot: _Plot, series: Series) -> ChartLine:
    pieces: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(series.values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((plot.edge(place) + plot.place / 2, plot.y(value)))
    return ChartLine(
        kind=series.kind,
        pieces=[" ".join(f"{x:.1f},{y:.1f}" for x, y in piece) for piece in pieces if piece[1:]],
        dots=[(f"{x:.1f}", f"{y:.1f}") for piece in pieces if len(piece) == 1 for x, y in piece],
    )


def count_ticks(highest: float) -> list[float]:
    """Return round numbers from 0 to at least `highest`: steps of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** math.floor(math.log10(max(highest / TICKS, 1.0)))
    step = next(step * factor for factor in (1, 2, 5, 10) if step * factor * TICKS >= highest)
    return _from_zero(step, highest)


def percent_ticks(_highest: float) -> list[float]:
    """Return the ticks of an axis of shares."""
    return [0.0, 25.0, 50.0, 75.0, 100.0]


def second_ticks(highest: float) -> list[float]:
    """Return round lengths of time from 0 to at least `highest`: such as people name them."""
    step = next((step for step in SECONDS if step * TICKS >= highest), None)
    if step is None:
        days = highest / TICKS / 86_400
        step = 86_400 * count_ticks(days * TICKS)[1]
    return _from_zero(step, highest)


def _from_zero(step: float, highest: float) -> list[float]:
    return [step * place for place in range(max(1, math.ceil(highest / step - 1e-9)) + 1)]


def clock_ticks(moments: Sequence[datetime], most: int) -> list[tuple[int, str]]:
    """Return up to `most` places at which the clock shows something round, with what it shows."""
    if len(moments) < 2:
        return []
    span = (moments[1] - moments[0]).total_seconds()
    whole = span * len(moments)
    step = next((step for step in CLOCK if step >= span and whole / step <= most), CLOCK[-1])
    days = step >= 86_400
    return [
        (place, f"{moment:%a %d}" if days else f"{moment:%H:%M}")
        for place, moment in enumerate(moments)
        if _since_midnight(moment) % min(step, 86_400) < span
        and (step <= 86_400 or moment.toordinal() % 2 == 0)
    ]


def _since_midnight(moment: datetime) -> float:
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return (moment - midnight) / timedelta(seconds=1)


def write_count(value: float) -> str:
    """Write a number so that it fits an axis."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:.1f}".removesuffix(".0") + " M"
    if value >= 10_000:
        return f"{value / 1000:.1f}".removesuffix(".0") + " k"
    return f"{value:,.0f}"


def write_percent(value: float) -> str:
    """Write a share."""
    return f"{value:.0f} %"


def _labelled(value: float | None, write: Callable[[float], str]) -> str:
    return "\N{EN DASH}" if value is None else write(value)


COUNTS = Scale(write=write_count, ticks=count_ticks)
SHARES = Scale(write=write_percent, ticks=percent_ticks)
LENGTHS = Scale(write=format_duration, ticks=second_ticks)
