"""Dead letters: submissions and messages that failed or were set aside; people retry or close them.

A closed submission or status message is kept, as the record of the decision; a message of an inbox
is deleted. Each act is an event in the history.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import models, transaction
from django.db.models import Q, QuerySet

from ..alerting import alerts
from ..applications import outbox, status_messages
from ..database import batches, sql
from ..database.lane import Problem
from ..decisions.progress import Refusal
from ..messaging import queues
from ..models import Application, DeadLetter, StatusMessage, Submission, Task, TaskRequest
from ..models.history import EventKind
from ..models.inbox import STATUSES as STATUS_LANE
from ..models.inbox import SUBMISSIONS, StatusKind

BATCH_SIZE = 1000  # dead letters in one transaction


class Kind(models.TextChoices):
    """The kind of a dead letter."""

    SUBMISSION = "submission", "Submission"
    REQUEST = "request", "Request about a task"
    STATUS = "status", "Status message"
    INBOX = "inbox", "Inbox message"


class State(models.TextChoices):
    """The state of a dead letter: what happens next."""

    WAITING = "waiting", "Waiting for a retry"
    UNKNOWN = "unknown", "Unknown workflow"  # it waits, too
    REFUSED = "refused", "Refused or given up"  # until a person acts
    CLOSED = "closed", "Closed"  # nothing any more


@dataclass(frozen=True, kw_only=True)
class DeadLetterFilter:
    """Which dead letters; empty means any, for `state` any but closed ones.

    `name` is the workflow of a submission or request, the application of a status message, the queue of an
    inbox message.
    """

    kind: str = ""
    name: str = ""
    state: str = ""
    id: int | None = None

    @property
    def kinds(self) -> list[Kind]:
        """The selected kinds."""
        return [kind for kind in Kind if self.kind in {"", kind}]


INBOX_MESSAGES = {
    "": SUBMISSIONS.failed,
    State.WAITING: SUBMISSIONS.failed & Q(refused_at=None, problem=Problem.FAILING),
    State.UNKNOWN: SUBMISSIONS.failed & Q(refused_at=None, problem=Problem.UNKNOWN),
    State.REFUSED: SUBMISSIONS.failed & Q(refused_at__isnull=False),
    State.CLOSED: Q(closed_at__isnull=False),
}
STATUSES = {
    "": STATUS_LANE.failed,
    State.WAITING: STATUS_LANE.failed & Q(refused_at=None),
    State.REFUSED: STATUS_LANE.failed & Q(refused_at__isnull=False),
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
    + (SELECT count(*) FROM (SELECT FROM orchestration_taskrequest
        WHERE (refused_at IS NOT NULL OR NOT (problem = '')) AND closed_at IS NULL
        LIMIT %(limit)s) AS c)
    + (SELECT count(*) FROM (SELECT FROM orchestration_statusmessage
        WHERE NOT (reason = '') AND closed_at IS NULL LIMIT %(limit)s) AS c)
    + (SELECT count(*) FROM (SELECT FROM orchestration_deadletter LIMIT %(limit)s) AS c)
"""

# Each gives what it changed of the rows, which are locked: id, name, target, task. What is tried again
# is due now, and not since it was made.

# Of several that were set aside for one reference only the newest can be a task; none while another
# waits for it.
RETRY_SUBMISSIONS = """
UPDATE orchestration_submission SET refused_at = NULL, closed_at = NULL,
    retry_at = clock_timestamp(), tries = 0, problem = '', reason = ''
WHERE id IN (
    SELECT DISTINCT ON (s.workflow, s.reference) s.id FROM orchestration_submission s
    WHERE s.id = ANY(%(ids)s) AND (s.refused_at IS NULL OR NOT EXISTS (
        SELECT FROM orchestration_submission o WHERE o.workflow = s.workflow
            AND o.reference = s.reference AND o.refused_at IS NULL))
    ORDER BY s.workflow, s.reference, s.id DESC)
RETURNING id, workflow AS name, workflow || ' ' || reference AS target, NULL::uuid AS task
"""

RETRY_REQUESTS = """
UPDATE orchestration_taskrequest SET refused_at = NULL, closed_at = NULL,
    retry_at = clock_timestamp(), tries = 0, problem = '', reason = ''
WHERE id = ANY(%(ids)s)
RETURNING id, workflow AS name, what || ' of ' || workflow || ' ' || reference AS target,
    NULL::uuid AS task
"""

RETRY_STATUSES = """
UPDATE orchestration_statusmessage SET refused_at = NULL, closed_at = NULL,
    send_after = clock_timestamp(), tries = 0, reason = ''
WHERE id = ANY(%(ids)s)
RETURNING id, reply_to AS name, 'status message ' || number || ' to ' || reply_to AS target,
    task_id AS task
"""

RETRY_INBOX = """
UPDATE orchestration_deadletter SET retry_at = clock_timestamp(), tries = 0
WHERE id = ANY(%(ids)s)
RETURNING id, queue AS name, 'message of ' || queue AS target, NULL::uuid AS task
"""

CLOSE_SUBMISSIONS = """
UPDATE orchestration_submission SET refused_at = coalesce(refused_at, clock_timestamp()),
    closed_at = clock_timestamp(), retry_at = NULL
WHERE id = ANY(%(ids)s)
RETURNING id, workflow AS name, workflow || ' ' || reference AS target, NULL::uuid AS task
"""

CLOSE_REQUESTS = """
UPDATE orchestration_taskrequest SET refused_at = coalesce(refused_at, clock_timestamp()),
    closed_at = clock_timestamp(), retry_at = NULL
WHERE id = ANY(%(ids)s)
RETURNING id, workflow AS name, what || ' of ' || workflow || ' ' || reference AS target,
    NULL::uuid AS task
"""

CLOSE_STATUSES = """
UPDATE orchestration_statusmessage SET refused_at = coalesce(refused_at, clock_timestamp()),
    closed_at = clock_timestamp(), send_after = NULL
WHERE id = ANY(%(ids)s)
RETURNING id, reply_to AS name, 'status message ' || number || ' to ' || reply_to AS target,
    task_id AS task
"""

CLOSE_INBOX = """
DELETE FROM orchestration_deadletter WHERE id = ANY(%(ids)s)
RETURNING id, queue AS name, 'message of ' || queue AS target, NULL::uuid AS task
"""

WITH_EVENTS = """
WITH acted AS ({statement}), noted AS (
    INSERT INTO orchestration_event (task_id, kind, actor, reason, detail, at)
    SELECT task, %(event)s, %(by)s, %(reason)s,
        jsonb_build_object('letter', %(kind)s || ' ' || id, 'target', target), clock_timestamp()
    FROM acted ORDER BY id
)
SELECT name, count(*) FROM acted GROUP BY name
"""

RETRY = {
    Kind.SUBMISSION: RETRY_SUBMISSIONS,
    Kind.REQUEST: RETRY_REQUESTS,
    Kind.STATUS: RETRY_STATUSES,
    Kind.INBOX: RETRY_INBOX,
}
CLOSE = {
    Kind.SUBMISSION: CLOSE_SUBMISSIONS,
    Kind.REQUEST: CLOSE_REQUESTS,
    Kind.STATUS: CLOSE_STATUSES,
    Kind.INBOX: CLOSE_INBOX,
}


def submissions(wanted: DeadLetterFilter) -> QuerySet[Submission]:
    """The selected submissions."""
    rows = Submission.objects.filter(INBOX_MESSAGES.get(wanted.state, NONE))
    return _named(rows, "workflow", wanted)


def requests(wanted: DeadLetterFilter) -> QuerySet[TaskRequest]:
    """The selected requests."""
    rows = TaskRequest.objects.filter(INBOX_MESSAGES.get(wanted.state, NONE))
    return _named(rows, "workflow", wanted)


def statuses(wanted: DeadLetterFilter) -> QuerySet[StatusMessage]:
    """The selected status messages."""
    rows = StatusMessage.objects.filter(STATUSES.get(wanted.state, NONE))
    return _named(rows, "reply_to", wanted)


def inbox(wanted: DeadLetterFilter) -> QuerySet[DeadLetter]:
    """The selected inbox messages."""
    return _named(DeadLetter.objects.filter(INBOX.get(wanted.state, NONE)), "queue", wanted)


ROWS: dict[Kind, Callable[[DeadLetterFilter], QuerySet[Any]]] = {
    Kind.SUBMISSION: submissions,
    Kind.REQUEST: requests,
    Kind.STATUS: statuses,
    Kind.INBOX: inbox,
}


def count(wanted: DeadLetterFilter, limit: int) -> int:
    """Return how many are wanted, of each kind no further than `limit`."""
    return sum(ROWS[kind](wanted).order_by()[:limit].count() for kind in wanted.kinds)


def waiting(limit: int) -> int:
    """Return how many are not closed, of each kind no further than `limit` (one statement)."""
    return int(sql.run(WAITING, {"limit": limit})[0][0])


def retry(wanted: DeadLetterFilter, *, by: str, reason: str = "") -> int:
    """Have dead letters tried again now; return how many are.

    A submission is left as it is while another one waits for its reference. Many are retried in
    parts, each in its own transaction.
    """
    done = _act(RETRY, EventKind.RETRIED, wanted, by, reason)
    alerts.close_recovered()
    names = {name for kind, name in done if kind == Kind.STATUS}
    bells = {status_messages.queue_of(name) for name in names}
    posted = {Kind.SUBMISSION, Kind.REQUEST} & {kind for kind, _ in done}
    bells |= {queues.SUBMISSION} if posted else set()
    queues.ring_after_commit(*sorted(bells))
    return done.total()


def close(wanted: DeadLetterFilter, *, by: str, reason: str) -> int:
    """Record that dead letters shall not be processed; return how many are closed by that.

    Many are closed in parts, each in its own transaction.
    """
    done = _act(CLOSE, EventKind.CLOSED, wanted, by, reason)
    alerts.close_recovered()
    if {Kind.SUBMISSION, Kind.REQUEST} & {kind for kind, _ in done}:
        queues.ring_after_commit(queues.SUBMISSION)  # requests may have waited for these
    return done.total()


def _named(rows: QuerySet[Any], column: str, wanted: DeadLetterFilter) -> QuerySet[Any]:
    if wanted.name:
        rows = rows.filter(**{column: wanted.name})
    return rows.filter(id=wanted.id) if wanted.id is not None else rows


def _act(
    statements: dict[Kind, str], event: EventKind, wanted: DeadLetterFilter, by: str, reason: str
) -> Counter[tuple[Kind, str]]:
    """Act on what is wanted now, with an event of each; return how many, by kind and name.

    The newest come first: of those of one reference, which may be in different parts.
    """
    done: Counter[tuple[Kind, str]] = Counter()

    @transaction.atomic
    def act(kind: Kind, some: Sequence[int]) -> int:
        # what another has acted on meanwhile is not wanted any more: looked at when it is locked
        rows = ROWS[kind](wanted).filter(id__in=some).order_by("id").select_for_update()
        values = {"ids": list(rows.values_list("id", flat=True)), "kind": kind.value,
                  "event": event.value, "by": by, "reason": reason}  # fmt: skip
        statement = WITH_EVENTS.format(statement=statements[kind])
        counts = {(kind, name): count for name, count in sql.run(statement, values)}
        if kind == Kind.STATUS and event == EventKind.RETRIED:
            names = [name for _, name in counts]
            Application.objects.filter(name__in=names).update(push_after=None)
        if event == EventKind.CLOSED:
            _notify_closed(kind, values["ids"])
        done.update(counts)
        return sum(counts.values())

    for kind in wanted.kinds:
        ids = list(ROWS[kind](wanted).order_by("-id").values_list("id", flat=True))
        for start in range(0, len(ids), BATCH_SIZE):
            part = ids[start : start + BATCH_SIZE]
            batches.bisect(part, partial(act, kind), _skip_twin, patience=len(part))
    return done


def _notify_closed(kind: Kind, ids: Collection[int]) -> None:
    """Write to the applications that their submissions and requests are closed."""
    if kind == Kind.SUBMISSION:
        closed = Submission.objects.filter(id__in=ids).defer("data")
        outbox.write_without_task(closed, StatusKind.CLOSED)
    elif kind == Kind.REQUEST:
        closing = TaskRequest.objects.filter(id__in=ids).defer("amendment", "note")
        for one in closing.order_by("workflow", "reference", "id"):
            about = Task.objects.filter(workflow=one.workflow, reference=one.reference)
            task = about.select_for_update(no_key=True).values_list("id", flat=True).first()
            status_messages.write_refusal(one, task, Refusal.CLOSED)


def _skip_twin(_: int, error: Exception) -> None:
    """Leave a submission as it is: another one came to wait for its reference meanwhile."""
    if not sql.is_duplicate(error):
        raise error
