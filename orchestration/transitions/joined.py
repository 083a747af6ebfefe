"""End steps whose children have ended, or enough of them; undo children: awaiting → processed, or error."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from .. import conf
from ..cluster import crash_points
from ..database import prepared
from ..decisions.joining import (
    Ending,
    awaits_children,
    ending,
    ending_of_undo,
    lacks,
    may_undo,
    undoes,
)
from ..decisions.progress import StepView
from ..models import Join, Task
from ..states import Direction
from . import joins, reported, undo
from .change import Change
from .handled import Handled
from .locked_task import lock
from .settle import finish
from .waits import Report

BY = "scheduler"

# Whether any child has not ended (task_child_unended), and whether enough are processed (task_of_parent).
PROGRESS = """
SELECT p.step,
    EXISTS (SELECT FROM orchestration_task t WHERE t.parent_id = p.step AND t.ended_at IS NULL),
    p.enough IS NOT NULL AND (SELECT count(*) FROM (
        SELECT FROM orchestration_task t WHERE t.parent_id = p.step AND t.state = 'processed'
        LIMIT p.enough) AS processed) = p.enough
FROM unnest(%(steps)s::bigint[], %(enough)s::int[]) AS p (step, enough)
"""
# Of each step, the next children that are to be undone, the last first: by a step's own undo all, or those
# without whose result it has ended. Of an item only one is not being undone, so no page ends between two.
TO_UNDO = """
SELECT p.step, t.id, t.position FROM unnest(%(steps)s::bigint[], %(below)s::int[]) AS p (step, below)
CROSS JOIN LATERAL (
    SELECT t.id, t.position FROM orchestration_task t
    WHERE t.parent_id = p.step AND t.position < p.below AND t.undo_at IS NULL
    ORDER BY t.position DESC LIMIT %(limit)s) AS t
"""


class _Look(NamedTuple):
    """A step whose children are looked at, in its locked task; those below a position are to be undone."""

    change: Change
    step: StepView
    undo: StepView | None
    below: int

    @property
    def undoes(self) -> bool:
        """Return whether its undo awaits that all children are undone."""
        return undoes(self.undo)


def tasks_to_join(limit: int, excluded: Collection[UUID] = ()) -> list[UUID]:
    """Return the tasks of steps whose children are to be looked at, except `excluded`."""
    rows = Join.objects.exclude(task__in=excluded).order_by("id").values_list("task_id", flat=True)
    return list(dict.fromkeys(rows[:limit]))


@transaction.atomic
def join(tasks: Collection[UUID]) -> Handled:
    """Look at the children of steps, as asked for; skip tasks that others have locked.

    The tasks of steps are locked before those of their children. A child that another session has locked is
    not undone now: another look follows.
    """
    changes = lock(tasks, wait=False)
    rows = list(Join.objects.filter(task__in=changes).order_by("id"))
    looks = _looks(rows, changes)
    busy, goes_on, begun = _undo(looks)
    _end([look for look in looks if look.step.id not in goes_on])
    Join.objects.filter(id__in=[row.id for row in rows]).delete()
    done = Handled(handled=len(changes) - len(busy))
    done.add(finish([*changes.values(), *begun], by=BY))
    crash_points.reached("children.undone", begun)
    return done


def _looks(rows: Iterable[Join], changes: Mapping[UUID, Change]) -> list[_Look]:
    """Return the steps to look at, each once."""
    below: dict[int, int] = {}
    tasks: dict[int, UUID] = {}
    for row in rows:
        tasks[row.step_id] = row.task_id
        below[row.step_id] = max(below.get(row.step_id, 0), row.undo_below or 0)
    looks = []
    for step_id, task in tasks.items():
        change = changes[task]
        step = change.steps[step_id]
        undo = next(
            (
                other
                for other in change.steps.values()
                if other.name == step.name and other.direction == Direction.UNDO
            ),
            None,
        )
        looks.append(_Look(change, step, undo, below[step_id]))
    return looks


def _undo(looks: Sequence[_Look]) -> tuple[set[UUID], set[int], list[Change]]:
    """Begin the undo of the next children of steps.

    Returns the tasks of those whose children others have locked, the steps with children left, and the
    children whose undo begins.
    """
    undoing = {
        look.step.id: look
        for look in looks
        if look.below and may_undo(look.step, look.undo, undoing=look.change.undoing)
    }
    if not undoing:
        return set(), set(), []
    values = {
        "steps": list(undoing),
        "below": [look.below for look in undoing.values()],
        "limit": conf.BATCH_SIZE,
    }
    pages: dict[int, list[tuple[UUID, int]]] = defaultdict(list)
    for step, child, position in prepared.run(TO_UNDO, values):
        pages[step].append((child, position))
    of_children = {
        child: look
        for step, look in undoing.items()
        for child, position in pages[step]
        if look.undoes or lacks(look.step, position)
    }
    children = lock(of_children, wait=False)
    begun = [child for child in children.values() if not child.undoing]
    for child in begun:
        look = of_children[child.id]
        why = "is undone" if look.undoes else "has enough others"
        undo.begin(child, actor=BY, reason=f"“{look.step.name}” of {look.change.reference} {why}")
    return *_go_on(undoing, pages, of_children.keys() - children.keys()), begun


def _go_on(
    undoing: Mapping[int, _Look],
    pages: Mapping[int, Sequence[tuple[UUID, int]]],
    locked: Collection[UUID],
) -> tuple[set[UUID], set[int]]:
    """Ask for the next looks: what those undo that begin now is seen once it is written."""
    busy, goes_on = set(), set()
    for step, look in undoing.items():
        if not (page := pages[step]):
            continue
        left = [position for child, position in page if child in locked]
        if left:
            busy.add(look.change.id)
        joins.undo_all([step], max(left) + 1 if left else page[-1][1])
        goes_on.add(step)
    return busy, goes_on


def _end(looks: Sequence[_Look]) -> None:
    """End the steps whose children have ended, or enough of them."""
    awaiting = {
        look.step.id: look
        for look in looks
        if awaits_children(look.step, look.undo, undoing=look.change.undoing)
    }
    if not awaiting:
        return
    enough = [
        look.step.flow.enough if look.step.flow and not look.undoes else None
        for look in awaiting.values()
    ]
    progress = prepared.run(PROGRESS, {"steps": list(awaiting), "enough": enough})
    ended = [awaiting[step] for step, runs, is_enough in progress if is_enough or not runs]
    running = {step for step, runs, _ in progress if runs}
    children: dict[int, list[Task]] = defaultdict(list)
    rows = Task.objects.filter(parent__in=[look.step.id for look in ended]).order_by(
        "position", "id"
    )
    for child in rows.only("parent", "position", "state", "reference", "result", "undo_at"):
        children[child.parent_id or 0].append(child)
    reports = []
    for look in ended:
        of_step = children[look.step.id]
        if look.undoes and look.undo:
            reports.append((look.change, look.undo, _as_report(ending_of_undo(of_step))))
        else:
            how = ending(look.step, of_step, running=look.step.id in running)
            reports.append((look.change, look.step, _as_report(how)))
    reported.apply(reports)
    joins.undo_all([look.step.id for look in ended if look.step.id in running])


def _as_report(ending: Ending) -> Report:
    """Return how a step ends as it is reported."""
    return Report(id="children", actor=BY, **ending._asdict())
