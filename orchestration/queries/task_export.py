"""The tasks of a search as plain records, read in chunks: any number of them in constant memory."""

from collections.abc import Callable, Iterator, Sequence

from .. import conf
from ..database import replica
from ..database.time_limit import time_limit
from .exports import CHUNK, MOST, Listing, Record, amount, moment
from .search_query import Search
from .task_columns import NEWEST_FIRST, Order
from .task_filters import WAYS, count
from .task_list import TaskRow, read, rows_of
from .task_order import Row, TooMany
from .word_meanings import Resolved


def _text(row: TaskRow, text: str) -> str:
    return str(row.redactor(text)) if row.redactor else text


def _next(row: TaskRow) -> Record:
    at = row.outlook.at
    words = [row.outlook.text, *([moment(at) or ""] if at else [])]
    return {"next": _text(row, " ".join(words) + row.outlook.after), "next_at": moment(at)}


def _value(row: TaskRow) -> Record:
    task = row.task
    value = amount(task.value, task.currency) if task.value else None
    return {"value": value, "currency": task.currency or None}


def _error(row: TaskRow) -> Record:
    code = row.step.error_code if row.step else ""
    message = row.step.error_message if row.step else ""
    return {"error": code or None, "error_message": _text(row, message) or None}


# what an export has of each column of the list; of those in `SEVERAL` more than their own name
FIELDS: dict[str, Callable[[TaskRow], Record]] = {
    "state": lambda row: {"state": row.task.state, "overdue": row.task.overdue},
    "task": lambda row: {"task": row.task.name},
    "reference": lambda row: {"reference": row.task.reference},
    "workflow": lambda row: {"workflow": row.task.workflow},
    "contact": lambda row: {"contact": row.task.contact or None},
    "step": lambda row: {"step": row.step.label if row.step else None},
    "agent": lambda row: {"agent": row.step.agent if row.step else None},
    "next": _next,
    "error": _error,
    "attempts": lambda row: {"attempts": row.step.attempt if row.step else None},
    "value": _value,
    "priority": lambda row: {"priority": row.task.priority},
    "due": lambda row: {"due": None if row.task.ended_at else moment(row.task.complete_by)},
    "created": lambda row: {"created": moment(row.task.created_at)},
    "ended": lambda row: {"ended": moment(row.task.ended_at)},
}

SEVERAL = {
    "state": ("state", "overdue"),
    "next": ("next", "next_at"),
    "error": ("error", "error_message"),
    "value": ("value", "currency"),
}


def of_tasks(search: Search, meant: Resolved) -> Listing:
    """Return the tasks of a search, with the columns that it shows."""

    def found() -> int:
        with time_limit(conf.SEARCH_TIMEOUT_S, replica.alias(), WAYS):
            return count(meant.query, MOST)

    return Listing(
        what="tasks",
        query=search.text,
        columns=("id", *(name for one in search.columns for name in SEVERAL.get(one, (one,)))),
        personal=search.personal,
        count=found,
        records=lambda: (
            _record(row, search.columns)
            for rows in _chunks(meant, search.order, personal=search.personal)
            for row in rows
        ),
    )


def _chunks(meant: Resolved, order: Order, *, personal: bool) -> Iterator[Sequence[TaskRow]]:
    """Yield the tasks in their order; newest first where they are too many to be sorted."""
    past: Row | None = None
    while True:
        with time_limit(conf.SEARCH_TIMEOUT_S, replica.alias(), WAYS):
            try:
                found, _ = read(meant.query, order, past, CHUNK, ahead=True)
            except TooMany:
                order = NEWEST_FIRST
                found, _ = read(meant.query, order, past, CHUNK, ahead=True)
        yield rows_of([row.id for row in found], personal=personal)
        if len(found) < CHUNK:
            return
        past = found[-1]


def _record(row: TaskRow, columns: Sequence[str]) -> Record:
    record: Record = {"id": str(row.task.id)}
    for column in columns:
        record |= FIELDS[column](row)
    return record
