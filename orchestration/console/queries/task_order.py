"""Pages of a search in the order of a column: by key, in both directions, also at a million tasks.

Where at most `MOST` tasks match, all are read and sorted. More of them are read along an index of the
column, or value by value where these are few (`Column.walk`). For a column that has neither, the list
says that there are too many.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import dropwhile
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import BooleanField, F, Func, OrderBy, Q, QuerySet, Value

from ...database import sql
from ...models import Task
from ...states import FINAL_TASK_STATES, LIVE_TASK_STATES, TaskState
from . import task_filters
from .search_query import Query
from .search_terms import Bound, Filters, intersect
from .task_columns import Key, Order
from .task_conditions import OF_TASK, by_arm

MOST = 10_000  # tasks that are sorted by any column

# The workflows of all tasks: a step down the index task_once for each.
WORKFLOWS = """
WITH RECURSIVE known AS (
    (SELECT workflow FROM orchestration_task ORDER BY workflow LIMIT 1)
    UNION ALL
    SELECT (SELECT t.workflow FROM orchestration_task t WHERE t.workflow > known.workflow
        ORDER BY t.workflow LIMIT 1)
    FROM known WHERE known.workflow IS NOT NULL
) SELECT workflow FROM known WHERE workflow IS NOT NULL
"""


# For the transaction: along an index up to a limit, several processes read more than they save.
ALONE = "SET LOCAL max_parallel_workers_per_gather = 0"


class Row(NamedTuple):
    """Where a task stands in a sorted list: by its key, then by its id, newest first."""

    id: UUID
    key: Key = None

    def __str__(self) -> str:
        if self.key is None:
            return str(self.id)
        text = self.key.isoformat() if isinstance(self.key, datetime) else self.key
        return f"{self.id}~{text}"

    @classmethod
    def read(cls, text: str, order: Order) -> "Row":
        """Return the place that an address names; raise `ValueError` if it names none."""
        id_, mark, key = text.partition("~")
        return cls(UUID(id_), order.of.read(key) if mark else None)


class Section(NamedTuple):
    """A part of a sorted list that is read by itself: which keys it has, and its rows from one on."""

    has: Callable[[Key], bool]
    read: Callable[[Row | None, int], list[Row]]


class Direction(NamedTuple):
    """Where to read: `forward` is down the list, else up from below; then keys are `descending` or not."""

    forward: bool
    descending: bool

    def past(self, row: Row | None) -> Q:
        """Return what comes after a row with the same key."""
        if row is None:
            return Q()
        return Q(id__lt=row.id) if self.forward else Q(id__gt=row.id)

    @property
    def by_id(self) -> str:
        """Return the order of rows with the same key."""
        return "-id" if self.forward else "id"


class TooMany(Exception):
    """More tasks match than can be sorted by this column."""


def page(
    query: Query, order: Order, limit: int, past: Row | None, *, forward: bool
) -> tuple[list[Row], int]:
    """Return the next rows from a place in the order of reading, and how many match, one past `MOST` at most.

    Raises `TooMany`.
    """
    to = Direction(forward, order.descending is forward)
    matched = list(task_filters.ids(query)[: MOST + 1])
    if len(matched) <= MOST:
        return _read(_sorted(matched, order, to), past, limit), len(set(matched))
    if not order.of.walk:
        raise TooMany
    sql.run(ALONE, {})
    return _read(_walked(query, order, to), past, limit), len(matched)


def _read(sections: Iterable[Section], past: Row | None, limit: int) -> list[Row]:
    if past is not None:
        key = past.key
        sections = dropwhile(lambda section: not section.has(key), sections)
    rows: list[Row] = []
    for section in sections:
        rows += section.read(past, limit - len(rows))
        past = None
        if len(rows) >= limit:
            break
    return rows


class _OneOf(Func):
    """Whether a task is one of many: their ids come as one parameter."""

    template = "%(expressions)s::uuid[])"
    arg_joiner = " = ANY ("
    output_field = BooleanField()


def _sorted(ids: Sequence[UUID], order: Order, to: Direction) -> list[Section]:
    """Return the sections of few tasks: those with a key, and those without."""
    chosen = _OneOf(F("id"), Value(sql.as_array([str(id_) for id_ in ids])))
    tasks: QuerySet[Any] = Task.objects.annotate(key=order.of.key()).filter(chosen)
    keyed = _keyed([tasks.filter(key__isnull=False)], F("key"), to)
    return _in_turn([keyed, _keyless(tasks.filter(key__isnull=True), to)], to)


def _walked(query: Query, order: Order, to: Direction) -> Iterable[Section]:
    """Return the sections of many tasks."""
    if order.column in LISTED:
        values = sorted(LISTED[order.column](), reverse=to.descending)
        alone = LISTED_AS[order.column]
        return (_by_id(query, [alone(value)], value, to) for value in values)
    walk = WALKS[order.column]
    tasks = [
        Task.objects.filter(way, part).annotate(key=F(walk.field))
        for filters in query.alternatives
        if not (walk.ended and _is_unfinished(filters))
        for way in by_arm(filters, OF_TASK)
        for part in walk.parts
    ]
    rest = _by_id(query, walk.without, None, to)
    return _in_turn([_keyed(tasks, F(walk.field), to), rest], to)


def _is_unfinished(filters: Filters) -> bool:
    """Return whether a way finds only tasks that have not ended: all of an index would be walked."""
    return filters.by_step or bool(filters.troubles) or filters.state in UNFINISHED


def _in_turn(sections: list[Section], to: Direction) -> list[Section]:
    return sections if to.forward else sections[::-1]


def _keyed(walks: Sequence[QuerySet[Any]], key: F, to: Direction) -> Section:
    """Return the section of the tasks that have a key, read from each walk and merged."""
    by_key = OrderBy(key, descending=to.descending)

    def read(past: Row | None, limit: int) -> list[Row]:
        way = "lt" if to.descending else "gt"
        beyond = Q()
        if past is not None:
            # the first condition is what the index is entered by
            beyond = Q(**{f"key__{way}e": past.key}) & (
                Q(**{f"key__{way}": past.key}) | to.past(past)
            )
        matched = {
            Row(*row)
            for tasks in walks
            for row in tasks.filter(beyond)
            .order_by(by_key, to.by_id)
            .values_list("id", "key")[:limit]
        }
        rows = sorted(matched, key=lambda row: row.id, reverse=to.forward)
        return sorted(rows, key=_key, reverse=to.descending)[:limit]

    return Section(lambda key: key is not None, read)


def _key(row: Row) -> Any:
    return row.key


def _keyless(tasks: QuerySet[Any], to: Direction) -> Section:
    """Return the section of those tasks that have no key."""

    def read(past: Row | None, limit: int) -> list[Row]:
        rest = tasks.filter(to.past(past)).order_by(to.by_id)
        return [Row(id_) for id_ in rest.values_list("id", flat=True)[:limit]]

    return Section(lambda key: key is None, read)


def _by_id(query: Query, with_key: Sequence[Filters], key: Key, to: Direction) -> Section:
    """Return the section of the tasks that one of some conditions gives this key."""
    ways = [intersect(filters, more) for filters in query.alternatives for more in with_key]
    part = Query(alternatives=tuple(way for way in ways if way is not None))

    def read(past: Row | None, limit: int) -> list[Row]:
        matched = task_filters.page(
            part,
            limit,
            older=past.id if past and to.forward else None,
            newer=past.id if past and not to.forward else None,
            oldest_first=not to.forward,
        )
        return [Row(id_, key) for id_ in matched]

    return Section(lambda other: other == key, read)


def _workflows() -> list[str]:
    return [name for (name,) in sql.run(WORKFLOWS, {})]


class Walk(NamedTuple):
    """How the tasks with a key are read in its order, part by part; `without` one are the others.

    `ended`: only tasks that have ended have a key.
    """

    field: str
    parts: tuple[Q, ...]
    without: tuple[Filters, ...]
    ended: bool = False


# the values of a column that has few, and what has one of them
LISTED: dict[str, Callable[[], list[str]]] = {
    "state": lambda: list(TaskState.values),
    "workflow": _workflows,
}
LISTED_AS: dict[str, Callable[[str], Filters]] = {
    "state": lambda value: Filters(state=value),
    "workflow": lambda value: Filters(workflow=value),
}
UNFINISHED = (*LIVE_TASK_STATES, TaskState.ERROR)
WALKS = {
    # along task_by_value
    "value": Walk("value", (Q(value__gt=0),), (Filters(values=(Bound(sign="=", number=0),)),)),
    # along task_by_end
    "ended": Walk(
        "ended_at",
        (Q(ended_at__isnull=False),),
        tuple(Filters(state=state) for state in UNFINISHED),
        ended=True,
    ),
    # along task_due and task_due_in_error; those that are late by task_late, and sorted
    "due": Walk(
        "complete_by",
        (
            Q(state__in=LIVE_TASK_STATES, overdue=False),
            Q(state__in=LIVE_TASK_STATES, overdue=True),
            Q(state=TaskState.ERROR),
        ),
        tuple(Filters(state=state) for state in FINAL_TASK_STATES),
    ),
}
