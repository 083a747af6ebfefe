"""Where each kind of act is kept, and how it is shown on the audit page.

Acts on tasks, agents, incidents and operations are events; settings have the history of their rows;
the admin has its own log, and exports their records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.db.models import OuterRef, Q, QuerySet

from ...models import (
    Event,
    Export,
    Policy,
    RetentionPolicy,
    Schedule,
    StepPolicy,
    SupervisorPolicy,
)
from ...models.history import ACTS, EventKind
from ...models.incident import IncidentEventKind
from ...people.redaction import typed


class Cursor(NamedTuple):
    """The place of a line: lines are ordered by moment, then by source, then by number."""

    at: datetime
    source: int
    number: int

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.source}~{self.number}"

    @classmethod
    def read(cls, text: str) -> "Cursor":
        """Return the cursor that `text` is; raise `ValueError` if it is none."""
        at, source, number = text.split("~")
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            raise ValueError(f"{at} has no time zone")
        try:
            return cls(moment.astimezone(UTC), int(source), int(number))
        except OverflowError:
            raise ValueError(f"{at} is not a time that can be stored") from None


@dataclass(frozen=True, kw_only=True)
class AuditFilter:
    """Which lines: empty means any. `kind` is one of `KINDS`; `personal` as in `Filters`."""

    actor: str = ""
    kind: str = ""
    since: datetime | None = None
    until: datetime | None = None
    personal: bool = False


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """One act; `subject` is what it was done to, at `route` of the dashboard with `key`."""

    place: Cursor
    actor: str
    what: str
    subject: str
    reason: str
    route: str = ""
    key: object = None
    changes: Sequence[tuple[str, str, str]] = ()


@dataclass(frozen=True, kw_only=True)
class Source:
    """A list of acts: `at`, `number` and `actor` are the names of its columns.

    `prepare` reads at once what all the lines of a page need besides their rows.
    """

    kinds: Callable[[], Sequence[tuple[str, str]]]
    rows: Callable[[AuditFilter], QuerySet[Any]]
    line: Callable[[Any, Cursor, AuditFilter], AuditEntry]
    at: str = "at"
    number: str = "id"
    actor: str = "actor"
    prepare: Callable[[Sequence[Any], AuditFilter], None] = lambda _rows, _filters: None


# --- Events ---------------------------------------------------------------------------------------
def _events(filters: AuditFilter) -> QuerySet[Any]:
    # the operation's own page lists what it does to each task: here it has one line
    rows = Event.objects.filter(Q(operation=None) | Q(task=None), kind__in=ACTS)
    if filters.kind:
        rows = rows.filter(kind=filters.kind)
    rows = rows.select_related("task", "step", "incident")
    return rows.defer("step__request", "step__result", "task__data")


def _of_event(row: Any, place: Cursor, filters: AuditFilter) -> AuditEntry:
    task = row.task
    named = (row.detail.get(name) for name in ("target", "agent", "title"))
    subject, route = next((str(name) for name in named if name), ""), ""
    key: object = None
    if task:
        step = f"{row.step.name} of " if row.step else ""
        subject, route, key = f"{step}{task.name}", "task", task.id
    elif row.operation_id:
        subject, route, key = f"operation {row.operation_id}", "operation", row.operation_id
    elif row.incident:
        subject, route, key = row.incident.title, "incident", row.incident_id
    return AuditEntry(
        place=place,
        actor=row.actor,
        what=_what(row),
        subject=subject,
        reason=typed(row.reason, personal=filters.personal),
        route=route,
        key=key,
    )


def _what(row: Event) -> str:
    what = str(row.detail.get("what") or "")
    match row.kind:
        case EventKind.BULK if what:
            return f"Operation: {what}"
        case EventKind.INCIDENT if what in IncidentEventKind.values:
            return f"Incident: {IncidentEventKind(what).label.lower()}"
    return row.what


# --- Settings -------------------------------------------------------------------------------------
def _history_of(model: Any, key: str, kind: str = "policy", what: str = "Policy changed") -> Source:
    """Return the changes of settings; `key` identifies a row, `what` describes them."""
    history: QuerySet[Any] = model.history.all()
    before = history.filter(**{key: OuterRef(key)}, history_id__lt=OuterRef("history_id"))

    def rows(_filters: AuditFilter) -> QuerySet[Any]:
        # the engine creates the first rows itself, not a user
        people = history.filter(history_user__isnull=False).select_related("history_user")
        previous = before.order_by("-history_id").values("history_id")[:1]
        annotated: QuerySet[Any] = people.annotate(before=previous)
        return annotated

    def prepare(rows: Sequence[Any], _filters: AuditFilter) -> None:
        earlier = model.history.in_bulk([row.before for row in rows if row.before])
        for row in rows:
            row.earlier = earlier.get(row.before)

    return Source(
        kinds=lambda: [(kind, what)],
        rows=rows,
        line=partial(_of_history, what),
        at="history_date",
        number="history_id",
        actor="history_user__username",
        prepare=prepare,
    )


def _of_history(what: str, row: Any, place: Cursor, filters: AuditFilter) -> AuditEntry:
    changes = (
        row.diff_against(row.earlier, excluded_fields=["updated_at"]).changes if row.earlier else []
    )
    return AuditEntry(
        place=place,
        actor=row.history_user.get_username(),
        what=what,
        subject=_subject(row),
        reason=typed(row.history_change_reason or "", personal=filters.personal),
        changes=[
            (change.field.replace("_", " "), str(change.old), str(change.new)) for change in changes
        ],
    )


def _subject(row: Any) -> str:
    """Return what a version of a setting is about."""
    if hasattr(row, "step"):
        return f"{row.workflow}/{row.step}"
    if hasattr(row, "cron"):
        return str(row.name)
    return str(getattr(row, "agent", getattr(row, "workflow", "supervisor policy")))


# --- The admin ------------------------------------------------------------------------------------
def _admin_log(_filters: AuditFilter) -> QuerySet[Any]:
    # the history of policies records their changes
    rows = LogEntry.objects.exclude(
        content_type__model__in=(
            "policy",
            "steppolicy",
            "supervisorpolicy",
            "retentionpolicy",
            "schedule",
        )
    )
    return rows.select_related("user", "content_type")


def _of_log(row: LogEntry, place: Cursor, filters: AuditFilter) -> AuditEntry:
    verb = {ADDITION: "added", DELETION: "deleted"}.get(row.action_flag, "changed")
    kind = row.content_type.name if row.content_type else "something"
    return AuditEntry(
        place=place,
        actor=row.user.get_username(),
        what=f"Admin: {kind} {verb}",
        subject=row.object_repr if filters.personal else "",
        reason=row.get_change_message() if filters.personal else "",
    )


# --- Exports --------------------------------------------------------------------------------------
def _exports(_filters: AuditFilter) -> QuerySet[Any]:
    return Export.objects.all()


def _of_export(row: Export, place: Cursor, filters: AuditFilter) -> AuditEntry:
    data = "with personal data" if row.personal else "without personal data"
    return AuditEntry(
        place=place,
        actor=row.actor,
        what="Export",
        subject=f"{row.rows:,} {row.what} as {row.get_format_display()}, {data}",
        # a search may name whom tasks are for
        reason=row.query if filters.personal else "",
    )


SOURCES = (
    Source(
        kinds=lambda: [(kind.value, kind.label) for kind in ACTS],
        rows=_events,
        line=_of_event,
    ),
    _history_of(Policy, "agent"),
    _history_of(StepPolicy, "id"),
    _history_of(SupervisorPolicy, "id"),
    _history_of(RetentionPolicy, "workflow"),
    _history_of(Schedule, "id", "schedule", "Schedule changed"),
    Source(
        kinds=lambda: [("admin", "Other change in the admin")],
        rows=_admin_log,
        line=_of_log,
        at="action_time",
        actor="user__username",
    ),
    Source(kinds=lambda: [("export", "Export")], rows=_exports, line=_of_export),
)
