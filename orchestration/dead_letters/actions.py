"""Dead letters: submissions and messages that failed or were set aside; people retry or close them.

A closed submission or status message is kept, as the record of the decision; a message of an inbox
is deleted. Each act is an event in the history.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import models, transaction
from django.db.models import QuerySet

from ..alerting import alerts
from ..applications import outbox, status_messages
from ..database import batches, sql
from ..decisions.progress import Refusal
from ..messaging import queues
from ..models import Application, Submission, Task, TaskRequest
from ..models.history import EventKind
from ..models.inbox import INBOX_LETTERS, STATUSES, SUBMISSIONS, StatusKind
from ..models.request import REQUESTS

BATCH_SIZE = 1000  # dead letters in one transaction


class Kind(models.TextChoices):
    """The kind of a dead letter."""

    SUBMISSION = "submission", "Submission"
    REQUEST = "request", "Request about a task"
    STATUS = "status", "Status message"
    INBOX = "inbox", "Inbox message"


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


LANES = {
    Kind.SUBMISSION: SUBMISSIONS,
    Kind.REQUEST: REQUESTS,
    Kind.STATUS: STATUSES,
    Kind.INBOX: INBOX_LETTERS,
}
WAITING = f"SELECT {' + '.join(lane.count(lane.failed) for lane in LANES.values())}"

# Of several that were set aside for one reference only the newest can be a task; none while another
# waits for it.
NEWEST = f"""id IN (
    SELECT DISTINCT ON (m.workflow, m.reference) m.id FROM orchestration_submission m
    WHERE m.id = ANY(%(ids)s) AND ({SUBMISSIONS.where(SUBMISSIONS.open)} OR NOT EXISTS (
        SELECT FROM orchestration_submission o WHERE o.workflow = m.workflow
            AND o.reference = m.reference AND {SUBMISSIONS.where(SUBMISSIONS.open, "o")}))
    ORDER BY m.workflow, m.reference, m.id DESC)"""  # noqa: S608 - put together from constants

# What is tried again is due now, and not since it was made.
RETRY = {
    kind: lane.retry(NEWEST if kind == Kind.SUBMISSION else "") for kind, lane in LANES.items()
}
CLOSE = {kind: lane.close() for kind, lane in LANES.items()}

WITH_EVENTS = """
WITH acted AS ({statement}), noted AS (
    INSERT INTO orchestration_event (task_id, kind, actor, reason, detail, at)
    SELECT task, %(event)s, %(by)s, %(reason)s,
        jsonb_build_object('letter', %(kind)s || ' ' || id, 'target', target), clock_timestamp()
    FROM acted ORDER BY id
)
SELECT name, count(*) FROM acted GROUP BY name
"""


def rows(kind: Kind, letters: DeadLetterFilter) -> QuerySet[Any]:
    """Return the selected rows of a kind."""
    lane = LANES[kind]
    chosen = lane.in_state(letters.state)
    if letters.name:
        chosen = chosen.filter(**{lane.group: letters.name})
    return chosen.filter(id=letters.id) if letters.id is not None else chosen


def count(letters: DeadLetterFilter, limit: int) -> int:
    """Return how many are selected, of each kind no further than `limit`."""
    return sum(rows(kind, letters).order_by()[:limit].count() for kind in letters.kinds)


def waiting(limit: int) -> int:
    """Return how many are not closed, of each kind no further than `limit` (one statement)."""
    return int(sql.run(WAITING, {"limit": limit})[0][0])


def retry(letters: DeadLetterFilter, *, by: str, reason: str = "") -> int:
    """Have dead letters tried again now; return how many are.

    A submission is left as it is while another one waits for its reference. Many are retried in
    parts, each in its own transaction.
    """
    done = _act(RETRY, EventKind.RETRIED, letters, by, reason)
    alerts.close_recovered()
    names = {name for kind, name in done if kind == Kind.STATUS}
    bells = {status_messages.queue_of(name) for name in names}
    posted = {Kind.SUBMISSION, Kind.REQUEST} & {kind for kind, _ in done}
    bells |= {queues.SUBMISSION} if posted else set()
    queues.ring_after_commit(*sorted(bells))
    return done.total()


def close(letters: DeadLetterFilter, *, by: str, reason: str) -> int:
    """Record that dead letters shall not be processed; return how many are closed by that.

    Many are closed in parts, each in its own transaction.
    """
    done = _act(CLOSE, EventKind.CLOSED, letters, by, reason)
    alerts.close_recovered()
    if {Kind.SUBMISSION, Kind.REQUEST} & {kind for kind, _ in done}:
        queues.ring_after_commit(queues.SUBMISSION)  # requests may have waited for these
    return done.total()


def _act(
    statements: dict[Kind, str], event: EventKind, letters: DeadLetterFilter, by: str, reason: str
) -> Counter[tuple[Kind, str]]:
    """Act on what is selected now, with an event of each; return how many, by kind and name.

    The newest come first: of those of one reference, which may be in different parts.
    """
    done: Counter[tuple[Kind, str]] = Counter()

    @transaction.atomic
    def act(kind: Kind, ids: Sequence[int]) -> int:
        # what another has acted on meanwhile is not selected any more: looked at when it is locked
        locked = rows(kind, letters).filter(id__in=ids).order_by("id").select_for_update()
        values = {"ids": list(locked.values_list("id", flat=True)), "kind": kind.value,
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

    for kind in letters.kinds:
        ids = list(rows(kind, letters).order_by("-id").values_list("id", flat=True))
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
        for submission in closing.order_by("workflow", "reference", "id"):
            about = Task.objects.filter(
                workflow=submission.workflow, reference=submission.reference
            )
            task = about.select_for_update(no_key=True).values_list("id", flat=True).first()
            status_messages.write_refusal(submission, task, Refusal.CLOSED)


def _skip_twin(_: int, error: Exception) -> None:
    """Leave a submission as it is: another one came to wait for its reference meanwhile."""
    if not sql.is_duplicate(error):
        raise error
