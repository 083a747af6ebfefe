"""Dead letters as operators see them: what failed or was set aside, of each kind, newest first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ..database import clock
from ..database.lane import Problem
from ..dead_letters import actions
from ..dead_letters.actions import DeadLetterFilter, Kind, State
from ..models import DeadLetter, Event, StatusMessage, Submission, TaskRequest
from ..models.fields import read_json
from ..models.history import EventKind
from .agent_facts import CAP
from .conflicts import UserAction
from .redaction import HIDDEN, Redactor, redactors

PAGE = 50
Hidden = Mapping[UUID, Redactor] | None  # what hides personal data, by task; None shows them
DID = {EventKind.RETRIED: "retried it", EventKind.CLOSED: "closed it"}


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
        """What names it in an address: as closed only if it was seen to be."""
        closed = "&state=closed" if self.state == State.CLOSED else ""
        return f"kind={self.kind.value}&id={self.id}{closed}"


@dataclass(frozen=True, kw_only=True)
class LettersPage:
    """The newest dead letters, and how many there are, no further than the cap of each kind."""

    now: datetime
    rows: Sequence[Letter]
    total: int


def letters(wanted: DeadLetterFilter, *, personal: bool, limit: int = PAGE) -> LettersPage:
    """Return the newest dead letters that are wanted; `personal`: with personal data."""
    rows = [
        row
        for kind in LETTERS
        if kind in wanted.kinds
        for row in of_kind(kind, wanted, limit, personal=personal)
    ]
    rows.sort(key=lambda row: row.since, reverse=True)
    return LettersPage(
        now=clock.database_now(), rows=rows[:limit], total=actions.count(wanted, CAP + 1)
    )


def of_kind(
    kind: Kind, wanted: DeadLetterFilter, limit: int, before: int | None = None, *, personal: bool
) -> list[Letter]:
    """Return the newest wanted ones of a kind, or those before an id: one query, or two for statuses."""
    rows = actions.ROWS[kind](wanted).order_by("-id")
    if before:
        rows = rows.filter(id__lt=before)
    found: list[Any] = list((rows.select_related("task") if kind is Kind.STATUS else rows)[:limit])
    messages = (row for row in found if isinstance(row, StatusMessage))
    hidden = None if personal else redactors(row.task for row in messages if row.task)
    return [LETTERS[kind](row, hidden) for row in found]


def last_requeue(wanted: DeadLetterFilter) -> UserAction | None:
    """Return the last action on a dead letter."""
    acts = Event.objects.filter(kind__in=DID, detail__letter=f"{wanted.kind} {wanted.id}")
    event = acts.order_by("-at").first()
    return UserAction.of_event(event, DID[EventKind(event.kind)]) if event else None


def _submission(row: Submission, hidden: Hidden) -> Letter:
    redactor = None if hidden is None else Redactor(row.workflow, row.data)
    waits = State.UNKNOWN if row.problem == Problem.UNKNOWN else State.WAITING
    return Letter(
        kind=Kind.SUBMISSION,
        id=row.id,
        state=_state(row.refused_at, row.closed_at, waits),
        name=row.workflow,
        subject=row.reference,
        task=None,
        since=row.closed_at or row.refused_at or row.created_at,
        tries=row.tries,
        next_at=row.retry_at,
        reason=redactor(row.reason) if redactor else row.reason,
        content=redactor.input if redactor else row.data,
    )


def _request(row: TaskRequest, hidden: Hidden) -> Letter:
    waits = State.UNKNOWN if row.problem == Problem.UNKNOWN else State.WAITING
    content = {"step": row.step, "amendment": row.amendment, "note": row.note, "actor": row.actor}
    return Letter(
        kind=Kind.REQUEST,
        id=row.id,
        state=_state(row.refused_at, row.closed_at, waits),
        name=row.workflow,
        subject=f"{row.reference}: {row.get_what_display()}",
        task=None,
        since=row.closed_at or row.refused_at or row.created_at,
        tries=row.tries,
        next_at=row.retry_at,
        reason=row.reason if hidden is None else HIDDEN,
        content=content if hidden is None else HIDDEN,
    )


def _status(row: StatusMessage, hidden: Hidden) -> Letter:
    redactor = None
    if hidden is not None:
        redactor = hidden[row.task.id] if row.task else Redactor(row.workflow, {})
    about = row.task.name if row.task else row.reference
    return Letter(
        kind=Kind.STATUS,
        id=row.id,
        state=_state(row.refused_at, row.closed_at, State.WAITING),
        name=row.reply_to,
        subject=f"{about}, message {row.number}: {row.get_kind_display()}",
        task=row.task_id,
        since=row.closed_at or row.refused_at or row.created_at,
        tries=row.tries,
        next_at=row.send_after,
        reason=redactor(row.reason) if redactor else row.reason,
        content=redactor(row.detail) if redactor else row.detail,
    )


def _inbox(row: DeadLetter, hidden: Hidden) -> Letter:
    try:
        content = read_json(row.body)
    except ValueError:
        content = row.body
    return Letter(
        kind=Kind.INBOX,
        id=row.id,
        state=State.WAITING if row.retry_at else State.REFUSED,
        name=row.queue,
        subject=f"message {row.id}",
        task=None,
        since=row.created_at,
        tries=row.tries,
        next_at=row.retry_at,
        # whose task it was is not known for sure
        reason=row.reason if hidden is None else HIDDEN,
        content=content if hidden is None else HIDDEN,
    )


def _state(refused_at: datetime | None, closed_at: datetime | None, waits: State) -> State:
    if closed_at:
        return State.CLOSED
    return State.REFUSED if refused_at else waits


LETTERS: dict[Kind, Callable[[Any, Hidden], Letter]] = {
    Kind.SUBMISSION: _submission,
    Kind.REQUEST: _request,
    Kind.STATUS: _status,
    Kind.INBOX: _inbox,
}
