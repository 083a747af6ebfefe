"""Dead letters as operators see them: what failed or was set aside, of each kind, newest first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from ..database import clock
from ..database.capped_counts import CAP
from ..database.lane import Lane, State
from ..models import DeadLetter, StatusMessage, Submission, TaskRequest
from ..models.fields import read_json
from ..people.redaction import HIDDEN, Redactor, redactors
from . import actions
from .actions import DeadLetterFilter, Kind

PAGE = 50
Hidden = Mapping[UUID, Redactor] | None  # what hides personal data, by task; None shows them


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A dead letter; `name` is its workflow, application or queue; `next_at` is its next try."""

    kind: Kind
    id: int
    state: State
    name: str
    subject: str
    task: UUID | None
    since: datetime
    tries: int
    next_at: datetime | None
    reason: str
    content: Any

    @property
    def key(self) -> str:
        """Its key in an address; it says that the letter is closed only if it was shown as closed."""
        closed = "&state=closed" if self.state == State.CLOSED else ""
        return f"kind={self.kind.value}&id={self.id}{closed}"


@dataclass(frozen=True, kw_only=True)
class LettersPage:
    """The newest dead letters, and how many there are, no further than the cap of each kind."""

    now: datetime
    rows: Sequence[Letter]
    total: int


def letters(filters: DeadLetterFilter, *, personal: bool, limit: int = PAGE) -> LettersPage:
    """Return the newest dead letters that match; `personal`: with personal data."""
    rows = [
        row for kind in filters.kinds for row in of_kind(kind, filters, limit, personal=personal)
    ]
    rows.sort(key=lambda row: row.since, reverse=True)
    return LettersPage(
        now=clock.database_now(), rows=rows[:limit], total=actions.count(filters, CAP + 1)
    )


def of_kind(
    kind: Kind, filters: DeadLetterFilter, limit: int, before: int | None = None, *, personal: bool
) -> list[Letter]:
    """Return the newest matches of a kind, or those before an id: one query, or two for statuses."""
    lane = actions.LANES[kind]
    rows = actions.rows(kind, filters).annotate(state=lane.state).order_by("-id")
    if before:
        rows = rows.filter(id__lt=before)
    newest = list((rows.select_related("task") if kind is Kind.STATUS else rows)[:limit])
    messages = (row for row in newest if isinstance(row, StatusMessage))
    hidden = None if personal else redactors(row.task for row in messages if row.task)
    return [_letter(kind, lane, row, hidden) for row in newest]


def _letter(kind: Kind, lane: Lane, row: Any, hidden: Hidden) -> Letter:
    shown = SHOWN[kind](row, hidden)
    since = (getattr(row, name) for name in (lane.closed_at, lane.refused_at) if name)
    return Letter(
        kind=kind,
        id=row.id,
        state=State(row.state),
        name=getattr(row, lane.group),
        subject=shown.subject,
        task=shown.task,
        since=next(filter(None, since), row.created_at),
        tries=row.tries,
        next_at=getattr(row, lane.due_at),
        reason=shown.hide(row.reason),
        content=shown.content,
    )


class _Shown(NamedTuple):
    """What is special to a kind: `hide` is what its reason is shown as."""

    subject: str
    content: Any
    hide: Callable[[str], str]
    task: UUID | None = None


def _submission(row: Submission, hidden: Hidden) -> _Shown:
    if hidden is None:
        return _Shown(row.reference, row.data, str)
    redactor = Redactor(row.workflow, row.data)
    return _Shown(row.reference, redactor.input, redactor)


def _request(row: TaskRequest, hidden: Hidden) -> _Shown:
    subject = f"{row.reference}: {row.get_what_display()}"
    if hidden is not None:
        return _Shown(subject, HIDDEN, _hide)
    content = {"step": row.step, "amendment": row.amendment, "note": row.note, "actor": row.actor}
    return _Shown(subject, content, str)


def _status(row: StatusMessage, hidden: Hidden) -> _Shown:
    about = row.task.name if row.task else row.reference
    subject = f"{about}, message {row.number}: {row.get_kind_display()}"
    if hidden is None:
        return _Shown(subject, row.detail, str, row.task_id)
    redactor = hidden[row.task.id] if row.task else Redactor(row.workflow, {})
    return _Shown(subject, redactor(row.detail), redactor, row.task_id)


def _inbox(row: DeadLetter, hidden: Hidden) -> _Shown:
    if hidden is not None:  # whose task it was is not known for sure
        return _Shown(f"message {row.id}", HIDDEN, _hide)
    try:
        content = read_json(row.body)
    except ValueError:
        content = row.body
    return _Shown(f"message {row.id}", content, str)


def _hide(_: str) -> str:
    return HIDDEN


SHOWN: dict[Kind, Callable[[Any, Hidden], _Shown]] = {
    Kind.SUBMISSION: _submission,
    Kind.REQUEST: _request,
    Kind.STATUS: _status,
    Kind.INBOX: _inbox,
}
