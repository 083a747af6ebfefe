"""A workflow as a drawing: steps in columns by what they wait for, arrows between, plain numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..queries.workflows import StepShape, WorkflowShape

BOX = (190, 74)  # width and height, in units of the drawing
GAP = (64, 26)
EDGE = 8  # around it all


@dataclass(frozen=True, kw_only=True)
class Box:
    """A step: where it stands, and what it is."""

    x: int
    y: int
    shape: StepShape
    kind: str  # "error", "busy", "held" or "": picks the colour
    counts: str


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The drawing; `arrows` are SVG paths."""

    width: int
    height: int
    boxes: Sequence[Box]
    arrows: Sequence[str]


def graph(shape: WorkflowShape) -> Graph:
    """Return the drawing of a workflow: each step right of all that it comes after."""
    column = _columns({node.step.name: tuple(node.step.after) for node in shape.steps})
    rows: dict[int, int] = {}
    boxes: dict[str, Box] = {}
    for node in shape.steps:
        at = column[node.step.name]
        row = rows.get(at, 0)
        rows[at] = row + 1
        boxes[node.step.name] = Box(
            x=EDGE + at * (BOX[0] + GAP[0]),
            y=EDGE + row * (BOX[1] + GAP[1]),
            shape=node,
            kind=_kind(node),
            counts=_counts(node),
        )
    tallest = max(rows.values(), default=1)
    arrows = [
        _arrow(boxes[before], boxes[node.step.name])
        for node in shape.steps
        for before in node.step.after
    ]
    return Graph(
        width=2 * EDGE + (max(column.values(), default=0) + 1) * (BOX[0] + GAP[0]) - GAP[0],
        height=2 * EDGE + tallest * (BOX[1] + GAP[1]) - GAP[1],
        boxes=list(boxes.values()),
        arrows=arrows,
    )


def _columns(after: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return each step's column: one more than the last of those that it comes after."""
    columns: dict[str, int] = {}
    left = dict(after)
    while left:
        ready = [
            name for name, before in left.items() if all(earlier in columns for earlier in before)
        ]
        if not ready:  # a circle: a check refuses to start with one
            ready = list(left)
        for name in ready:
            columns[name] = 1 + max(
                (columns.get(earlier, -1) for earlier in left[name]), default=-1
            )
        for name in ready:
            del left[name]
    return columns


def _arrow(start: Box, end: Box) -> str:
    x, y = start.x + BOX[0], start.y + BOX[1] // 2
    to_x, to_y = end.x, end.y + BOX[1] // 2
    bend = (to_x - x) // 2
    line = f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x - 2} {to_y}"
    return f"{line}m-7 -4l7 4l-7 4"


def _kind(node: StepShape) -> str:
    if node.counts.error:
        return "error"
    if node.hold is not None:
        return "held"
    busy = node.counts.pending or node.counts.processing or node.counts.undoing
    return "busy" if busy else ""


def _counts(node: StepShape) -> str:
    """Return how many tasks are at the step, short enough for the box."""
    parts = [
        f"{count:,} {word}"
        for count, word in (
            (node.counts.error, "in error"),
            (node.counts.processing, "at work"),
            (node.counts.pending, "waiting"),
            (node.counts.undoing, "undoing"),
        )
        if count
    ]
    return ", ".join(parts[:2]) + (" …" if len(parts) > 2 else "")
