"""A workflow as a drawing: steps in columns by what they wait for, arrows between, plain numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...decisions.flow import ANY, PASS
from ..queries.workflows import StepShape, WorkflowShape

BOX = (190, 74)  # width and height, in units of the drawing
LINE = 19  # by which boxes are higher where one says when it is skipped
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
    flow: str = ""  # when it is skipped, in short
    title: str = ""  # the same in full


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """The SVG paths of an arrow to a step; `optional` if that has a condition."""

    line: str
    head: str
    optional: bool


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The drawing; the text with a box's counts stands at `counts_y` in it."""

    width: int
    height: int
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    box_height: int
    counts_y: int


def graph(shape: WorkflowShape) -> Graph:
    """Return the drawing of a workflow: each step right of all that it comes after."""
    column = _columns({node.step.name: tuple(node.step.after) for node in shape.steps})
    line = LINE if any(node.step.may_be_skipped for node in shape.steps) else 0
    height = BOX[1] + line
    rows: dict[int, int] = {}
    boxes: dict[str, Box] = {}
    for node in shape.steps:
        at = column[node.step.name]
        row = rows.get(at, 0)
        rows[at] = row + 1
        boxes[node.step.name] = Box(
            x=EDGE + at * (BOX[0] + GAP[0]),
            y=EDGE + row * (height + GAP[1]),
            shape=node,
            kind=_kind(node),
            counts=_counts(node),
            flow=_flow(node),
            title=_title(node),
        )
    tallest = max(rows.values(), default=1)
    arrows = [
        _arrow(boxes[before], boxes[node.step.name], height // 2)
        for node in shape.steps
        for before in node.step.after
    ]
    return Graph(
        width=2 * EDGE + (max(column.values(), default=0) + 1) * (BOX[0] + GAP[0]) - GAP[0],
        height=2 * EDGE + tallest * (height + GAP[1]) - GAP[1],
        boxes=list(boxes.values()),
        arrows=arrows,
        box_height=height,
        counts_y=62 + line,
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


def _arrow(start: Box, end: Box, middle: int) -> Arrow:
    x, y = start.x + BOX[0], start.y + middle
    to_x, to_y = end.x, end.y + middle
    bend = (to_x - x) // 2
    return Arrow(
        line=f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x - 2} {to_y}",
        head=f"M{to_x - 9} {to_y - 4}l7 4l-7 4",
        optional=end.shape.step.when is not True,
    )


def _kind(node: StepShape) -> str:
    if node.counts.error:
        return "error"
    if node.hold is not None:
        return "held"
    at_work = node.counts.pending or node.counts.processing or node.counts.awaiting
    busy = at_work or node.counts.undoing
    return "busy" if busy else ""


def _flow(node: StepShape) -> str:
    """Return when a step begins or is skipped, short enough for the box."""
    if node.begins:
        return f"not before {node.begins}"
    if node.condition:
        return f"if {node.condition}"
    passed = [code for code, follows in node.step.refused.items() if follows == PASS]
    codes = ", ".join("any refusal" if code == ANY else code for code in passed)
    return f"passes over {codes}" if codes else ""


def _title(node: StepShape) -> str:
    """Return when a step begins or is skipped, and what follows its refusals."""
    begins = f"Not before {node.begins}." if node.begins else ""
    needed = f"Needed if {node.condition}." if node.condition else ""
    refused = f"Refusals: {node.refusals}." if node.refusals else ""
    return " ".join(filter(None, (begins, needed, refused)))


def _counts(node: StepShape) -> str:
    """Return how many tasks are at the step, short enough for the box."""
    parts = [
        f"{count:,} {word}"
        for count, word in (
            (node.counts.error, "in error"),
            (node.counts.processing, "at work"),
            (node.counts.awaiting, "awaiting"),
            (node.counts.pending, "waiting"),
            (node.counts.undoing, "undoing"),
        )
        if count
    ]
    return ", ".join(parts[:2]) + (" …" if len(parts) > 2 else "")
