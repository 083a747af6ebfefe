"""The tasks of a search as plain records, read in chunks: any number of them in constant memory."""

from collections.abc import Iterator, Mapping, Sequence

from ... import conf
from ...database import replica
from ...database.time_limit import time_limit
from .exports import CHUNK, MOST, Listing, Value, amount, attribute, listing, moment
from .search_query import Search
from .task_columns import NEWEST_FIRST, Order
from .task_filters import WAYS, count
from .task_list import TaskRow, read, rows_of
from .task_order import Row, TooMany
from .word_meanings import Resolved


def _text(row: TaskRow, text: str) -> str:
    return str(row.redactor(text)) if row.redactor else text


def _next(row: TaskRow) -> str:
    at = row.outlook.at
    words = [row.outlook.text, *([moment(at) or ""] if at else [])]
    return _text(row, " ".join(words) + row.outlook.after)


def _value(row: TaskRow) -> str | None:
    return amount(row.task.value, row.task.currency) if row.task.value else None


def _of_step(name: str) -> Value:
    return lambda row: getattr(row.step, name) if row.step else None


def _message(row: TaskRow) -> str | None:
    return _text(row, row.step.error_message if row.step else "") or None


# what an export has of each column of the list
FIELDS: Mapping[str, Mapping[str, Value]] = {
    "state": {"state": attribute("task.state"), "overdue": attribute("task.overdue")},
    "task": {"task": attribute("task.name")},
    "reference": {"reference": attribute("task.reference")},
    "workflow": {"workflow": attribute("task.workflow")},
    "about": {
        "about_workflow": lambda row: row.task.about_workflow or None,
        "about": lambda row: row.task.about_reference or None,
    },
    "contact": {"contact": lambda row: row.task.contact or None},
    "step": {"step": _of_step("label")},
    "agent": {"agent": _of_step("agent")},
    "next": {"next": _next, "next_at": attribute("outlook.at")},
    "error": {"error": lambda row: _of_step("error_code")(row) or None, "error_message": _message},
    "attempts": {"attempts": _of_step("attempt")},
    "value": {"value": _value, "currency": lambda row: row.task.currency or None},
    "priority": {"priority": attribute("task.priority")},
    "due": {"due": lambda row: None if row.task.ended_at else moment(row.task.complete_by)},
    "created": {"created": attribute("task.created_at")},
    "ended": {"ended": attribute("task.ended_at")},
}


def of_tasks(search: Search, resolved: Resolved) -> Listing:
    """Return the tasks of a search, with the columns that it shows."""

    def counted() -> int:
        with time_limit(conf.SEARCH_TIMEOUT_S, replica.alias(), WAYS):
            return count(resolved.query, MOST)

    def chunks() -> Iterator[Sequence[TaskRow]]:
        return _chunks(resolved, search.order, personal=search.personal)

    fields = {"id": attribute("task.id")}
    for column in search.columns:
        fields |= FIELDS[column]
    return listing("tasks", search.text, chunks, fields, counted, personal=search.personal)


def _chunks(resolved: Resolved, order: Order, *, personal: bool) -> Iterator[Sequence[TaskRow]]:
    """Yield the tasks in their order; newest first where they are too many to be sorted."""
    past: Row | None = None
    while True:
        with time_limit(conf.SEARCH_TIMEOUT_S, replica.alias(), WAYS):
            try:
                tasks, _ = read(resolved.query, order, past, CHUNK, forward=True)
            except TooMany:
                order = NEWEST_FIRST
                tasks, _ = read(resolved.query, order, past, CHUNK, forward=True)
        yield rows_of([task.id for task in tasks], personal=personal)
        if len(tasks) < CHUNK:
            return
        past = tasks[-1]
