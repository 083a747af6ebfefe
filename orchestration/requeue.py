"""Dead letters: submissions and messages that failed or were set aside; people retry or close them.

A closed submission or status message is kept, as the record of the decision; a message of an inbox
is deleted. Each act is an event in the history.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import models, transaction
from django.db.models import Q, QuerySet

from . import alerts, queues, registry, sql
from .models import Application, DeadLetter, Event, StatusMessage, Submission
from .models.history import EventKind
from .models.inbox import ASIDE, Problem


class Kind(models.TextChoices):
    """What a dead letter is."""

    SUBMISSION = "submission", "Submission"
    STATUS = "status", "Status message"
    INBOX = "inbox", "Inbox message"


class State(models.TextChoices):
    """What happens next to a dead letter."""

    WAITING = "waiting", "Waits for its next try"
    UNKNOWN = "unknown", "Unknown workflow"  # it waits, too
    REFUSED = "refused", "Refused or given up"  # nothing, until a person acts
    CLOSED = "closed", "Closed"  # nothing any more


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which dead letters; empty means any, for `state` any but closed ones.

    `name` is the workflow of a submission, the application of a status message, the queue of an
    inbox message.
    """

    kind: str = ""
    name: str = ""
    state: str = ""
    id: int | None = None

    @property
    def kinds(self) -> list[Kind]:
        """The kinds that are wanted."""
        return [kind for kind in Kind if self.kind in {"", kind}]


SUBMISSIONS = {
    "": Q(closed_at=None),
    State.WAITING: Q(refused_at=None, problem=Problem.FAILING),
    State.UNKNOWN: Q(refused_at=None, problem=Problem.UNKNOWN),
    State.REFUSED: Q(refused_at__isnull=False, closed_at=None),
    State.CLOSED: Q(closed_at__isnull=False),
}
STATUSES = {
    "": Q(closed_at=None),
    State.WAITING: Q(refused_at=None),
    State.REFUSED: Q(refused_at__isnull=False, closed_at=None),
    State.CLOSED: Q(closed_at__isnull=False),
}
INBOX = {
    "": Q(),
    State.WAITING: Q(retry_at__isnull=False),
    State.REFUSED: Q(retry_at=None),
}
NONE = Q(id=None)

WAITING = """
SELECT (SELECT count(*) FROM (SELECT FROM orchestration_submission
        WHERE (refused_at IS NOT NULL OR NOT (problem = '')) AND closed_at IS NULL
        LIMIT %(limit)s) AS c)
    + (SELECT count(*) FROM (SELECT FROM orchestration_statusmessage
        WHERE NOT (reason = '') AND closed_at IS NULL LIMIT %(limit)s) AS c)
    + (SELECT count(*) FROM (SELECT FROM orchestration_deadletter LIMIT %(limit)s) AS c)
"""

# Of several that were set aside for one reference only the newest can be a task; none while another
# waits for it.
RETRY_SUBMISSIONS = """
UPDATE orchestration_submission SET refused_at = NULL, closed_at = NULL, retry_at = NULL, tries = 0,
    problem = '', reason = ''
WHERE id IN (
    SELECT DISTINCT ON (s.workflow, s.reference) s.id FROM orchestration_submission s
    WHERE s.id = ANY(%(ids)s) AND (s.refused_at IS NULL OR NOT EXISTS (
        SELECT FROM orchestration_submission o WHERE o.workflow = s.workflow
            AND o.reference = s.reference AND o.refused_at IS NULL))
    ORDER BY s.workflow, s.reference, s.refused_at DESC NULLS FIRST)
RETURNING id, workflow, workflow || ' ' || reference, NULL
"""

RETRY_STATUSES = """
UPDATE orchestration_statusmessage m
SET refused_at = NULL, closed_at = NULL, send_after = NULL, tries = 0, reason = ''
WHERE id = ANY(%(ids)s) AND reason <> ''
RETURNING id, reply_to, 'status message ' || number || ' to ' || reply_to, task_id
"""

RETRY_INBOX = """
UPDATE orchestration_deadletter SET retry_at = clock_timestamp(), tries = 0
WHERE id = ANY(%(ids)s)
RETURNING id, queue, 'message of ' || queue, NULL
"""

CLOSE_SUBMISSIONS = """
UPDATE orchestration_submission SET refused_at = coalesce(refused_at, clock_timestamp()),
    closed_at = clock_timestamp(), retry_at = NULL
WHERE id = ANY(%(ids)s) AND closed_at IS NULL AND (refused_at IS NOT NULL OR problem <> '')
RETURNING id, workflow, workflow || ' ' || reference, NULL
"""

CLOSE_STATUSES = """
UPDATE orchestration_statusmessage SET refused_at = coalesce(refused_at, clock_timestamp()),
    closed_at = clock_timestamp(), send_after = NULL
WHERE id = ANY(%(ids)s) AND closed_at IS NULL AND reason <> ''
RETURNING id, reply_to, 'status message ' || number || ' to ' || reply_to, task_id
"""

CLOSE_INBOX = """
DELETE FROM orchestration_deadletter WHERE id = ANY(%(ids)s)
RETURNING id, queue, 'message of ' || queue, NULL
"""

RETRY = {
    Kind.SUBMISSION: RETRY_SUBMISSIONS,
    Kind.STATUS: RETRY_STATUSES,
    Kind.INBOX: RETRY_INBOX,
}
CLOSE = {
    Kind.SUBMISSION: CLOSE_SUBMISSIONS,
    Kind.STATUS: CLOSE_STATUSES,
    Kind.INBOX: CLOSE_INBOX,
}


def submissions(wanted: Wanted) -> QuerySet[Submission]:
    """Return the submissions that are wanted."""
    rows = Submission.objects.filter(ASIDE, SUBMISSIONS.get(wanted.state, NONE))
    return _named(rows, "workflow", wanted)


def statuses(wanted: Wanted) -> QuerySet[StatusMessage]:
    """Return the status messages that are wanted."""
    rows = StatusMessage.objects.exclude(reason="").filter(STATUSES.get(wanted.state, NONE))
    return _named(rows, "reply_to", wanted)


def inbox(wanted: Wanted) -> QuerySet[DeadLetter]:
    """Return the messages of inboxes that are wanted."""
    return _named(DeadLetter.objects.filter(INBOX.get(wanted.state, NONE)), "queue", wanted)


ROWS: dict[Kind, Callable[[Wanted], QuerySet[Any]]] = {
    Kind.SUBMISSION: submissions,
    Kind.STATUS: statuses,
    Kind.INBOX: inbox,
}


def count(wanted: Wanted, limit: int) -> int:
    """Return how many are wanted, of each kind no further than `limit`."""
    return sum(ROWS[kind](wanted).order_by()[:limit].count() for kind in wanted.kinds)


def waiting(limit: int) -> int:
    """Return how many are not closed, of each kind no further than `limit` (one statement)."""
    return int(sql.run(WAITING, {"limit": limit})[0][0])


def retry(wanted: Wanted, *, by: str, reason: str = "") -> int:
    """Have dead letters tried again now; return how many are.

    A submission is left as it is while another one waits for its reference.
    """
    with transaction.atomic():
        done = _act(RETRY, EventKind.RETRIED, wanted, by, reason)
        names = {name for kind, name in done if kind == Kind.STATUS}
        Application.objects.filter(name__in=names).update(push_after=None)
        alerts.close_settled()
    bells = {queues.of_application(name) for name in names & registry.receivers.keys()}
    bells |= {queues.PUSH} if names - registry.receivers.keys() else set()
    bells |= {queues.SUBMISSION} if any(kind == Kind.SUBMISSION for kind, _ in done) else set()
    for bell in sorted(bells):
        transaction.on_commit(partial(queues.try_to_ring, bell))
    return len(done)


def close(wanted: Wanted, *, by: str, reason: str) -> int:
    """Record that dead letters shall not be processed; return how many are closed by that."""
    with transaction.atomic():
        done = _act(CLOSE, EventKind.CLOSED, wanted, by, reason)
        alerts.close_settled()
    return len(done)


def _named(rows: QuerySet[Any], column: str, wanted: Wanted) -> QuerySet[Any]:
    if wanted.name:
        rows = rows.filter(**{column: wanted.name})
    return rows.filter(id=wanted.id) if wanted.id is not None else rows


def _act(
    statements: dict[Kind, str], event: EventKind, wanted: Wanted, by: str, reason: str
) -> Sequence[tuple[Kind, str]]:
    """Act on what is wanted, with an event of each; return their kinds and names."""
    done: list[tuple[Kind, str]] = []
    events: list[Event] = []
    for kind in wanted.kinds:
        ids = list(ROWS[kind](wanted).order_by("id").values_list("id", flat=True))
        if not ids:
            continue
        for number, name, target, task in sql.run(statements[kind], {"ids": ids}):
            done.append((kind, name))
            detail = {"letter": f"{kind.value} {number}", "target": target}
            events.append(Event(kind=event, actor=by, reason=reason, task_id=task, detail=detail))
    Event.objects.bulk_create(events)
    return done
