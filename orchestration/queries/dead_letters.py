"""Dead letters as operators see them: what failed or was set aside, of each kind, newest first."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from .. import requeue
from ..models import DeadLetter, Event, StatusMessage, Submission, TaskRequest
from ..models.history import EventKind
from ..models.inbox import Problem
from ..redaction import HIDDEN, Veil, veils
from ..requeue import Kind, State, Wanted
from .acts import Act
from .agents import CAP, database_now

PAGE = 50
DID = {EventKind.RETRIED: "had it tried again", EventKind.CLOSED: "closed it"}


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


def letters(wanted: Wanted, *, personal: bool, limit: int = PAGE) -> LettersPage:
    """Return the newest dead letters that are wanted; `personal`: with personal data."""
    rows = [
        letter(row, personal)
        for kind, letter in LETTERS.items()
        if kind in wanted.kinds
        for row in _newest(kind, wanted, limit)
    ]
    rows.sort(key=lambda row: row.since, reverse=True)
    return LettersPage(now=database_now(), rows=rows[:limit], total=requeue.count(wanted, CAP + 1))


def who_requeued(wanted: Wanted) -> Act | None:
    """Return who last acted on a dead letter."""
    acts = Event.objects.filter(kind__in=DID, detail__letter=f"{wanted.kind} {wanted.id}")
    event = acts.order_by("-at").first()
    if event is None:
        return None
    did = DID[EventKind(event.kind)]
    return Act(actor=event.actor, did=did, at=event.at, reason=event.reason)


def _newest(kind: Kind, wanted: Wanted, limit: int) -> Sequence[Any]:
    rows = requeue.ROWS[kind](wanted).order_by("-id")
    return list((rows.select_related("task") if kind is Kind.STATUS else rows)[:limit])


def _submission(row: Submission, personal: bool) -> Letter:
    veil = None if personal else Veil(row.workflow, row.data)
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
        reason=veil(row.reason) if veil else row.reason,
        content=veil.input if veil else row.data,
    )


def _request(row: TaskRequest, personal: bool) -> Letter:
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
        reason=row.reason if personal else HIDDEN,
        content=content if personal else HIDDEN,
    )


def _veil(row: StatusMessage) -> Veil:
    return veils([row.task])[row.task.id] if row.task else Veil(row.workflow, {})


def _status(row: StatusMessage, personal: bool) -> Letter:
    veil = None if personal else _veil(row)
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
        reason=veil(row.reason) if veil else row.reason,
        content=veil(row.detail) if veil else row.detail,
    )


def _inbox(row: DeadLetter, personal: bool) -> Letter:
    try:
        content = json.loads(row.body)
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
        reason=row.reason if personal else HIDDEN,
        content=content if personal else HIDDEN,
    )


def _state(refused_at: datetime | None, closed_at: datetime | None, waits: State) -> State:
    if closed_at:
        return State.CLOSED
    return State.REFUSED if refused_at else waits


LETTERS: dict[Kind, Callable[[Any, bool], Letter]] = {
    Kind.SUBMISSION: _submission,
    Kind.REQUEST: _request,
    Kind.STATUS: _status,
    Kind.INBOX: _inbox,
}
