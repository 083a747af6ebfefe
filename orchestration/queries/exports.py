"""Lists as plain records, for a file: any number of rows, read in chunks, in constant memory.

Rows come newest first, by their ids, so that what changes while it is read comes once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from ..dead_letters import actions
from ..dead_letters.actions import DeadLetterFilter
from ..models import Export, Incident, Operation, OperationItem
from ..models.export import ExportFormat
from ..payloads.money import digits
from . import audit_log, dead_letters, incidents, operations
from .audit_sources import AuditEntry, AuditFilter, Cursor
from .dead_letters import Letter
from .incidents import IncidentFilters
from .operations import OperationFilters
from .redaction import redactors, typed

MOST = 100_000  # rows of one export
CHUNK = 500

Record = dict[str, Any]
Row = TypeVar("Row")
AnyModel = TypeVar("AnyModel", bound=Model)
Fields = Mapping[str, Callable[[Row], Any]]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A list as it was narrowed by `query`; `count` goes no further than `MOST`.

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


def _amounts(values: Mapping[str, int]) -> dict[str, str]:
    return {currency: amount(int(value), currency) for currency, value in values.items()}


def of_incidents(filters: IncidentFilters, query: str, *, personal: bool) -> Listing:
    """Return the incidents that `filters` ask for."""
    found = incidents.filtered(filters).select_related("assignee")
    fields: Fields[Incident] = {
        "id": lambda row: row.id,
        "title": lambda row: row.title,
        "state": lambda row: row.state,
        "severity": lambda row: row.severity,
        "workflow": lambda row: row.workflow,
        "step": lambda row: row.step,
        "direction": lambda row: row.direction,
        "agent": lambda row: row.agent,
        "outcome": lambda row: row.outcome,
        "error": lambda row: row.code or None,
        "message": lambda row: typed(row.sample, personal=personal),
        "in_error": lambda row: row.open_tasks,
        "at_risk": lambda row: _amounts(row.at_risk),
        "tasks": lambda row: row.tasks,
        "failures": lambda row: row.failures,
        "assignee": lambda row: row.assignee.get_username() if row.assignee else None,
        "first_seen": lambda row: moment(row.first_seen),
        "last_seen": lambda row: moment(row.last_seen),
        "resolved": lambda row: moment(row.resolved_at),
        "muted_until": lambda row: moment(row.muted_until),
    }
    return _of_rows("incidents", query, found, fields, personal=personal)


def of_operations(filters: OperationFilters, query: str, *, personal: bool) -> Listing:
    """Return the bulk operations that `filters` ask for."""
    found = operations.filtered(filters)
    fields: Fields[Operation] = {
        "id": lambda row: row.id,
        "action": lambda row: row.act,
        "state": lambda row: row.state,
        "incident": lambda row: row.incident_id,
        "reason": lambda row: typed(row.reason, personal=personal),
        "items": lambda row: row.items,
        **{state: _counted(state) for state in operations.COUNTED},
        "value": lambda row: _amounts(row.money),
        "by": lambda row: row.actor,
        "approved_by": lambda row: row.approved_by or None,
        "created": lambda row: moment(row.created_at),
        "started": lambda row: moment(row.started_at),
        "ended": lambda row: moment(row.ended_at),
    }
    return _of_rows("operations", query, found, fields, personal=personal)


def _counted(state: str) -> Callable[[Operation], int]:
    return lambda row: int(getattr(row, state))


def of_items(operation: Operation, state: str, query: str, *, personal: bool) -> Listing:
    """Return the items of an operation, those in a state if one is given."""
    found = operations.items(operation, state)

    def records(rows: Sequence[OperationItem]) -> Iterator[Record]:
        hidden = {} if personal else redactors(row.task for row in rows)
        for row in rows:
            shown = hidden.get(row.task_id, str)
            yield {
                "state": row.state,
                "task": shown(row.task.name),
                "id": str(row.task_id),
                "workflow": row.task.workflow,
                "step": row.step.name if row.step else None,
                "attempt": row.attempt,
                "cause": shown(row.cause) or None,
                "reason": shown(row.reason) or None,
                "sent": moment(row.sent_at),
                "ended": moment(row.ended_at),
            }

    return Listing(
        what="items",
        query=query,
        columns=(
            "state",
            "task",
            "id",
            "workflow",
            "step",
            "attempt",
            "cause",
            "reason",
            "sent",
            "ended",
        ),
        personal=personal,
        count=found[:MOST].count,
        records=lambda: (one for rows in _chunks(found) for one in records(rows)),
    )


def of_acts(wanted: AuditFilter, query: str) -> Listing:
    """Return the acts of people that the audit has."""

    def records() -> Iterator[Record]:
        older: Cursor | None = None
        while True:
            found = audit_log.acts(wanted, older=older, limit=CHUNK)
            yield from (_of_act(act) for act in found)
            if len(found) < CHUNK:
                return
            older = found[-1].place

    return Listing(
        what="acts",
        query=query,
        columns=("at", "by", "action", "subject", "reason", "changes"),
        personal=wanted.personal,
        count=lambda: audit_log.count(wanted, MOST),
        records=records,
    )


def _of_act(act: AuditEntry) -> Record:
    return {
        "at": moment(act.place.at),
        "by": act.actor,
        "action": act.what,
        "subject": act.subject,
        "reason": act.reason or None,
        "changes": [dict(zip(("field", "old", "new"), one, strict=True)) for one in act.changes],
    }


def of_dead_letters(wanted: DeadLetterFilter, query: str, *, personal: bool) -> Listing:
    """Return the dead letters that are wanted, kind by kind."""
    fields: Fields[Letter] = {
        "kind": lambda row: row.kind.value,
        "id": lambda row: row.id,
        "state": lambda row: row.state.value,
        "name": lambda row: row.name,
        "subject": lambda row: row.subject,
        "task": lambda row: str(row.task) if row.task else None,
        "since": lambda row: moment(row.since),
        "tries": lambda row: row.tries,
        "next_attempt": lambda row: moment(row.next_at),
        "reason": lambda row: row.reason,
        "content": lambda row: row.content,
    }

    def chunks() -> Iterator[Sequence[Letter]]:
        for kind in wanted.kinds:
            before = None
            while rows := dead_letters.of_kind(kind, wanted, CHUNK, before, personal=personal):
                yield rows
                before = rows[-1].id

    return Listing(
        what="dead letters",
        query=query,
        columns=tuple(fields),
        personal=personal,
        count=lambda: actions.count(wanted, MOST),
        records=lambda: _records(chunks(), fields),
    )


def _of_rows(
    what: str, query: str, found: QuerySet[AnyModel], fields: Fields[AnyModel], *, personal: bool
) -> Listing:
    return Listing(
        what=what,
        query=query,
        columns=tuple(fields),
        personal=personal,
        count=found[:MOST].count,
        records=lambda: _records(_chunks(found), fields),
    )


def _records(chunks: Iterator[Sequence[Row]], fields: Fields[Row]) -> Iterator[Record]:
    for rows in chunks:
        yield from ({name: value(row) for name, value in fields.items()} for row in rows)


def _chunks(found: QuerySet[AnyModel]) -> Iterator[Sequence[AnyModel]]:
    """Yield rows by their ids, the last ones first."""
    rows = list(found.order_by("-id")[:CHUNK])
    while rows:
        yield rows
        rows = list(found.filter(id__lt=rows[-1].pk).order_by("-id")[:CHUNK])
