"""The list of tasks: newest first, pages by key in both directions, and rows that stay put."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ..database import clock
from ..models import Step, Task
from . import next_step
from .agent_facts import agents, queued
from .holds import holds_on
from .redaction import Redactor, redactors
from .search_query import Filters
from .task_filters import count, matching, page

PAGE = 50


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in the list: after a task, before one, at the end; by default at the beginning.

    `shown` are the rows that the page shows already: these are returned as they are now,
    wherever they belong now, so that nothing moves under a reader's eyes.
    """

    older: UUID | None = None
    newer: UUID | None = None
    last: bool = False
    shown: Sequence[UUID] = ()


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """One task of the list, and the step that says where it stands.

    `gone` once the task is not what was searched for any more. `redactor` hides personal data.
    """

    task: Task
    step: Step | None
    outlook: next_step.NextStep
    gone: bool
    redactor: Redactor | None


@dataclass(frozen=True, kw_only=True)
class TaskPage:
    """One page, newest first; `newer` and `older` continue it.

    `fresh` is how many tasks have come to belong to it since it was first shown, `total` how many
    the whole list has, as far as they are counted.
    """

    now: datetime
    rows: Sequence[TaskRow]
    newer: UUID | None
    older: UUID | None
    fresh: int
    total: int

    @property
    def gone(self) -> int:
        """Return how many of its rows do not belong to it any more."""
        return sum(row.gone for row in self.rows)


def tasks(filters: Filters, place: Place | None = None) -> TaskPage:
    """Return a page of the tasks that `filters` ask for: a constant number of queries."""
    place = place or Place()
    ids, newer, older = _page(filters, place)
    shown = sorted(place.shown, reverse=True)[:PAGE] or ids
    known = set(shown)
    # past the last row of a full page come those that were on the next one all along
    fresh = [id_ for id_ in ids if id_ not in known and (len(shown) < PAGE or id_ > shown[-1])]
    belongs = known
    if place.shown:
        found = matching(filters).filter(id__in=shown)
        belongs = set(found.values_list("id", flat=True))
    return TaskPage(
        now=clock.database_now(),
        rows=_rows(shown, belongs, filters),
        newer=shown[0] if newer and shown else None,
        older=shown[-1] if older and shown else None,
        fresh=len(fresh),
        total=count(filters),
    )


def task_row(task_id: UUID, *, personal: bool) -> TaskRow:
    """Return one task's row alone; whether it is what was searched for, only its page knows."""
    (row,) = _rows([task_id], {task_id}, Filters(personal=personal))
    return row


def _page(filters: Filters, place: Place) -> tuple[list[UUID], bool, bool]:
    """Return the ids of a page, and whether there are newer and older ones."""
    if place.newer or place.last:
        # read from the far end, so that the last page costs what the first does
        ids = page(filters, PAGE + 1, newer=place.newer, oldest_first=True)
        if place.last or len(ids) >= PAGE:
            return ids[:PAGE][::-1], len(ids) > PAGE, place.newer is not None
        return _page(filters, Place())  # nearly at the beginning: give the whole first page
    ids = page(filters, PAGE + 1, older=place.older)
    return ids[:PAGE], place.older is not None, len(ids) > PAGE


def _rows(ids: Sequence[UUID], belongs: set[UUID], filters: Filters) -> list[TaskRow]:
    found = Task.objects.filter(id__in=ids)
    if filters.personal:
        found = found.defer("data")  # it may be large; only a redactor needs it
    by_id = {task.id: task for task in found}
    steps: dict[UUID, list[Step]] = defaultdict(list)
    of_page = Step.objects.filter(task__in=ids).defer("request", "result", "undo_request")
    for step in of_page.order_by("id"):
        steps[step.task_id].append(step)
    now, known, held = clock.database_now(), agents(), holds_on(ids)
    telling = {id_: _telling(steps[id_]) for id_ in ids}
    places = queued(step for step in telling.values() if step)
    hidden = {} if filters.personal else redactors(by_id.values())
    rows = []
    for task in (by_id[id_] for id_ in ids if id_ in by_id):
        at = telling[task.id]
        outlook = at and next_step.of_step(
            at,
            done=next_step.done_names(steps[task.id]),
            agents=known,
            now=now,
            hold=held.of(task.id, task.workflow, at.name),
            place=places.get(at.id, next_step.NOT_QUEUED),
        )
        rows.append(
            TaskRow(
                task=task,
                step=at,
                outlook=outlook
                or next_step.of_task(
                    task.state, "", None, 0, next_step.standing_names(steps[task.id])
                ),
                gone=task.id not in belongs,
                redactor=hidden.get(task.id),
            )
        )
    return rows


def _telling(steps: Sequence[Step]) -> Step | None:
    """Return the step that says where its task stands."""
    index = next_step.telling_step(steps)
    return steps[index] if index is not None else None
