"""Lists as plain records, for a file: any number of rows, read in chunks, in constant memory.

Rows come newest first, by their ids, so that what changes while it is read comes once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from ...database import clock
from ...dead_letters import actions
from ...dead_letters import listing as dead_letters
from ...dead_letters.actions import DeadLetterFilter
from ...dead_letters.listing import Letter
from ...models import Export, Operation
from ...models.export import ExportFormat
from ...payloads.currencies import digits
from ...people.redaction import redactors, typed
from . import audit_log, incidents, operations, schedules
from .audit_sources import AuditEntry, AuditFilter, Cursor
from .incidents import IncidentFilters
from .operations import OperationFilters
from .schedules import Filters as Schedules

MOST = 100_000  # rows of one export
CHUNK = 500

Record = dict[str, Any]
Value = Callable[[Any], Any]  # returns the value of a record's field from a row
AnyModel = TypeVar("AnyModel", bound=Model)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A list as filtered by `query`; `count` goes no further than `MOST`.

    `columns` are the fields of its records, in their order; `personal`: with personal data.
    """

    what: str
    query: str
    columns: Sequence[str]
    personal: bool
    count: Callable[[], int]
    records: Callable[[], Iterator[Record]]


def begin(listing: Listing, *, actor: str, form: ExportFormat) -> Iterator[Record]:
    """Record an export in the history, and return its records. Raises `TooSlow`."""
    Export.objects.create(
        actor=actor,
        what=listing.what,
        query=listing.query,
        format=form,
        columns=",".join(listing.columns),
        personal=listing.personal,
        rows=min(MOST, listing.count()),
    )
    return islice(listing.records(), MOST)


def moment(at: datetime | None) -> str | None:
    """Return a moment as a record has it: ISO 8601."""
    return at.isoformat() if at else None


def amount(value: int, currency: str) -> str:
    """Return an amount of minor units as a record has it: a decimal number, say 12.50."""
    return str(Decimal(value).scaleb(-digits(currency)))


def of_incidents(filters: IncidentFilters, query: str, *, personal: bool) -> Listing:
    """Return the incidents that `filters` ask for."""
    rows = incidents.filtered(filters).select_related("assignee")
    fields = _fields(
        "id title state severity workflow step direction agent outcome error message in_error "
        "at_risk tasks failures assignee first_seen last_seen resolved muted_until",
        error=lambda row: row.code or None,
        message=lambda row: typed(row.sample, personal=personal),
        in_error="open_tasks",
        at_risk=lambda row: _amounts(row.at_risk),
        assignee=lambda row: row.assignee.get_username() if row.assignee else None,
        resolved="resolved_at",
    )
    return listing("incidents", query, _by_id(rows), fields, rows[:MOST].count, personal=personal)


def of_operations(filters: OperationFilters, query: str, *, personal: bool) -> Listing:
    """Return the bulk operations that `filters` ask for."""
    rows = operations.filtered(filters)
    fields = _fields(
        f"id action state incident reason items {' '.join(operations.COUNTED)} value by "
        "approved_by created started ended",
        action="act",
        incident="incident_id",
        reason=lambda row: typed(row.reason, personal=personal),
        value=lambda row: _amounts(row.money),
        by="actor",
        approved_by=lambda row: row.approved_by or None,
        created="created_at",
        started="started_at",
        ended="ended_at",
    )
    return listing("operations", query, _by_id(rows), fields, rows[:MOST].count, personal=personal)


def of_schedules(filters: Schedules, query: str, *, personal: bool) -> Listing:
    """Return the schedules that `filters` ask for."""
    rows = schedules.filtered(filters, clock.database_now())
    fields = _fields(
        "id name workflow data due_field cron zone every start_at overlap catch_up catch_up_within jitter "
        "priority fairness_key reply_to paused declared due_at last_due last_reference submitted skipped "
        "missed problem",
        data=lambda row: row.data if personal else None,  # as the input of its tasks
    )
    return listing("schedules", query, _by_id(rows), fields, rows[:MOST].count, personal=personal)


def of_items(operation: Operation, state: str, query: str, *, personal: bool) -> Listing:
    """Return the items of an operation, those in a state if one is given."""
    rows = operations.items(operation, state)
    fields = _fields(
        "state task id workflow step attempt cause reason sent ended",
        task=lambda row: row.shown(row.task.name),
        id="task_id",
        workflow="task.workflow",
        step=lambda row: row.step.name if row.step else None,
        cause=lambda row: row.shown(row.cause) or None,
        reason=lambda row: row.shown(row.reason) or None,
        sent="sent_at",
        ended="ended_at",
    )

    def chunks() -> Iterator[Sequence[Any]]:
        for chunk in _by_id(rows)():
            hidden = {} if personal else redactors(row.task for row in chunk)
            for row in chunk:
                vars(row)["shown"] = hidden.get(row.task_id, str)
            yield chunk

    return listing("items", query, chunks, fields, rows[:MOST].count, personal=personal)


def of_acts(filters: AuditFilter, query: str) -> Listing:
    """Return the acts of people that the audit has."""
    fields = _fields(
        "at by action subject reason changes",
        at="place.at",
        by="actor",
        action="what",
        reason=lambda act: act.reason or None,
        changes=lambda act: [
            dict(zip(("field", "old", "new"), change, strict=True)) for change in act.changes
        ],
    )

    def chunks() -> Iterator[Sequence[AuditEntry]]:
        older: Cursor | None = None
        while acts := audit_log.acts(filters, older=older, limit=CHUNK):
            yield acts
            older = acts[-1].place

    count = partial(audit_log.count, filters, MOST)
    return listing("acts", query, chunks, fields, count, personal=filters.personal)


def of_dead_letters(filters: DeadLetterFilter, query: str, *, personal: bool) -> Listing:
    """Return the dead letters that `filters` ask for, kind by kind."""
    fields = _fields(
        "kind id state name subject task since tries next_attempt reason content",
        next_attempt="next_at",
    )

    def chunks() -> Iterator[Sequence[Letter]]:
        for kind in filters.kinds:
            before = None
            while rows := dead_letters.of_kind(kind, filters, CHUNK, before, personal=personal):
                yield rows
                before = rows[-1].id

    count = partial(actions.count, filters, MOST)
    return listing("dead letters", query, chunks, fields, count, personal=personal)


def _fields(names: str, **sources: str | Value) -> dict[str, Value]:
    """Return how each field of a record is read from a row: by its name unless `sources` say how else."""
    values = {name: sources.get(name, name) for name in names.split()}
    return {
        name: attribute(source) if isinstance(source, str) else source
        for name, source in values.items()
    }


def attribute(path: str) -> Value:
    """Return a function that reads an attribute of a row for a record."""
    get = attrgetter(path)

    def value(row: Any) -> Any:
        read = get(row)
        if isinstance(read, datetime):
            return moment(read)
        return str(read) if isinstance(read, UUID) else read

    return value


def _amounts(values: Mapping[str, int]) -> dict[str, str]:
    return {currency: amount(int(value), currency) for currency, value in values.items()}


def listing(
    what: str,
    query: str,
    chunks: Callable[[], Iterator[Sequence[Any]]],
    fields: Mapping[str, Value],
    count: Callable[[], int],
    *,
    personal: bool,
) -> Listing:
    """Return a list whose records have these fields of the rows that `chunks` yields."""

    def records() -> Iterator[Record]:
        for rows in chunks():
            yield from ({name: value(row) for name, value in fields.items()} for row in rows)

    return Listing(
        what=what,
        query=query,
        columns=tuple(fields),
        personal=personal,
        count=count,
        records=records,
    )


def _by_id(queryset: QuerySet[AnyModel]) -> Callable[[], Iterator[Sequence[AnyModel]]]:
    """Return a function that yields rows in chunks by their ids, the last ones first."""

    def chunks() -> Iterator[Sequence[AnyModel]]:
        rows = list(queryset.order_by("-id")[:CHUNK])
        while rows:
            yield rows
            rows = list(queryset.filter(id__lt=rows[-1].pk).order_by("-id")[:CHUNK])

    return chunks
