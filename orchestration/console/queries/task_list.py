"""The list of tasks: in an order, pages by key in both directions, and rows that stay put."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ... import conf
from ...database import clock, replica
from ...database.time_limit import time_limit
from ...models import Step, Task
from ...people.redaction import Redactor, redactors
from ...waiting import next_step
from ...waiting.agent_facts import agents, queued
from ...waiting.awaited import waits_of
from ...waiting.holds import holds_on
from . import task_order
from .search_query import Query
from .task_columns import NEWEST_FIRST, Order
from .task_filters import WAYS, belonging, count, page
from .task_order import Row, TooMany

PAGE = 50
MANY = 3  # rows that wait for the same thing at an agent: the list says it once, above


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in the list: after a task, before one, at the end; by default at the beginning.

    `shown` are the rows that the page shows already: these are returned as they are now,
    wherever they belong now, so that nothing moves under a reader's eyes.
    """

    older: Row | None = None
    newer: Row | None = None
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
    """One page; `newer` is where the one before it ends, `older` where the next one begins.

    `fresh` is how many tasks have come to belong to it since it was first shown, `total` how many
    the whole list has, as far as they are counted; `sorted_by` is its order, which is another than what was
    asked for where too many tasks match.
    """

    now: datetime
    rows: Sequence[TaskRow]
    newer: Row | None
    older: Row | None
    fresh: int
    total: int
    sorted_by: Order = NEWEST_FIRST

    @property
    def gone(self) -> int:
        """Return how many of its rows do not belong to it any more."""
        return sum(row.gone for row in self.rows)

    @property
    def waits(self) -> dict[str, "SharedWait"]:
        """Return what many of its rows wait for, by the agent that all of them wait for."""
        by_agent: dict[str, list[TaskRow]] = defaultdict(list)
        for row in self.rows:
            if row.outlook.agent:
                by_agent[row.outlook.agent].append(row)
        return {
            agent: SharedWait(outlook=rows[0].outlook, rows=len(rows), redactor=rows[0].redactor)
            for agent, rows in sorted(by_agent.items())
            if len(rows) >= MANY
        }


@dataclass(frozen=True, kw_only=True)
class SharedWait:
    """A reason for which several rows wait."""

    outlook: next_step.NextStep
    rows: int
    redactor: Redactor | None


@dataclass(frozen=True, kw_only=True)
class _Page:
    """The rows of a page in its order, whether there are others on both sides, and how many match."""

    rows: Sequence[Row]
    newer: bool
    older: bool
    total: int | None = None


def tasks(
    query: Query, place: Place | None = None, *, order: Order = NEWEST_FIRST, personal: bool
) -> TaskPage:
    """Return a page of the tasks that match a search: a constant number of queries. Raises `TooSlow`."""
    place = place or Place()
    with time_limit(conf.SEARCH_TIMEOUT_S, replica.alias(), WAYS):
        try:
            matches = _page(query, order, place)
        except TooMany:
            order = NEWEST_FIRST
            matches = _page(query, order, place)
        total = _total(query, matches, place)
        belongs = belonging(query, place.shown[:PAGE]) if place.shown else set()
    keys = {row.id: row for row in matches.rows}
    shown = [keys.get(id_, Row(id_)) for id_ in place.shown[:PAGE]] or list(matches.rows)
    ids = [row.id for row in shown]
    ends = [row for row in shown if order.by_id or row.id in keys]
    return TaskPage(
        now=clock.database_now(),
        rows=_rows(ids, belongs if place.shown else set(ids), personal=personal),
        newer=ends[0] if matches.newer and ends else None,
        older=ends[-1] if matches.older and ends else None,
        fresh=_fresh(matches.rows, ids, order),
        total=total,
        sorted_by=order,
    )


def task_row(task_id: UUID, *, personal: bool) -> TaskRow:
    """Return one task's row alone; whether it is what was searched for, only its page knows."""
    (row,) = rows_of([task_id], personal=personal)
    return row


def rows_of(ids: Sequence[UUID], *, personal: bool) -> list[TaskRow]:
    """Return the rows of tasks, in their order."""
    return _rows(ids, set(ids), personal=personal)


def _total(query: Query, matches: _Page, place: Place) -> int:
    """Return how many tasks match: a first page that is not full has all of them."""
    if matches.total is not None:
        return matches.total
    if not (place.older or place.newer or matches.older or matches.newer):
        return len(matches.rows)
    return count(query)


def _fresh(rows: Sequence[Row], shown: Sequence[UUID], order: Order) -> int:
    """Return how many rows came to a page since; past the last one come those of the next page."""
    known = set(shown)
    fresh = [row for row in rows if row.id not in known]
    if len(shown) < PAGE:
        return len(fresh)
    if order.by_id:
        last = shown[-1]
        return sum(row.id > last if order.descending else row.id < last for row in fresh)
    there = [index for index, row in enumerate(rows) if row.id in known]
    return sum(row.id not in known for row in rows[: there[-1]]) if there else len(fresh)


def _page(query: Query, order: Order, place: Place) -> _Page:
    if place.newer or place.last:
        # read from the far end, so that the last page costs what the first does
        rows, total = read(query, order, place.newer, PAGE + 1, forward=False)
        if place.last or len(rows) >= PAGE:
            more = len(rows) > PAGE
            there = place.newer is not None
            return _Page(rows=rows[:PAGE][::-1], newer=more, older=there, total=total)
        return _page(query, order, Place())  # nearly at the beginning: give the whole first page
    rows, total = read(query, order, place.older, PAGE + 1, forward=True)
    newer = place.older is not None
    return _Page(rows=rows[:PAGE], newer=newer, older=len(rows) > PAGE, total=total)


def read(
    query: Query, order: Order, past: Row | None, limit: int, *, forward: bool
) -> tuple[list[Row], int | None]:
    """Return the next rows from a place, and how many match, if they were counted. Raises `TooMany`."""
    if not order.by_id:
        return task_order.page(query, order, limit, past, forward=forward)
    oldest_first = order.descending is not forward
    bound = {"newer" if oldest_first else "older": past.id if past else None}
    matched = page(query, limit, oldest_first=oldest_first, **bound)
    return [Row(id_) for id_ in matched], None


def _rows(ids: Sequence[UUID], belongs: set[UUID], *, personal: bool) -> list[TaskRow]:
    matches = Task.objects.filter(id__in=ids)
    if personal:
        matches = matches.defer("data")  # it may be large; only a redactor needs it
    by_id = {task.id: task for task in matches}
    steps: dict[UUID, list[Step]] = defaultdict(list)
    of_page = Step.objects.filter(task__in=ids).defer("request", "result", "undo_request")
    for step in of_page.order_by("id"):
        steps[step.task_id].append(step)
    now = clock.database_now()
    known, held = agents(now), holds_on(ids)
    telling = {id_: _telling(steps[id_]) for id_ in ids}
    standing = [step for step in telling.values() if step]
    places, waits = queued(standing), waits_of(standing)
    hidden = {} if personal else redactors(by_id.values())
    rows = []
    for task in (by_id[id_] for id_ in ids if id_ in by_id):
        at = telling[task.id]
        outlook = at and next_step.of_step(
            at,
            workflow=task.workflow,
            done=next_step.done_names(steps[task.id]),
            agents=known,
            now=now,
            hold=held.of(task.id, task.workflow, at.name),
            place=places.get(at.id, next_step.NOT_QUEUED),
            wait=waits.get(at.id),
        )
        rows.append(
            TaskRow(
                task=task,
                step=at,
                outlook=outlook or next_step.of_task(task.state, "", None, 0, steps[task.id]),
                gone=task.id not in belongs,
                redactor=hidden.get(task.id),
            )
        )
    return rows


def _telling(steps: Sequence[Step]) -> Step | None:
    """Return the step that says where its task stands."""
    index = next_step.telling_step(steps)
    return steps[index] if index is not None else None
