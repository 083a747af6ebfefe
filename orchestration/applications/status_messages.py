"""Deliver status messages to applications: each has a private response queue (P27).

A message is a row, written in the transaction that changes its task, numbered per task, and deleted
when it has arrived. A receiver in the engine's processes takes a batch; the transaction that stores its
writes deletes the rows. Other applications fetch and acknowledge their messages, or have them sent
(`push`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery

from .. import conf, registry
from ..alerting.failures import fail
from ..cluster.debounce import Pauses
from ..database import batches, clock, sql
from ..decisions.progress import Refusal
from ..messaging import queues
from ..models import StatusMessage, Task, TaskRequest
from ..models.inbox import STATUSES, StatusKind
from ..tracing import spans, switch
from ..workflows.workflow import Refused
from . import owner_updates
from .outbox import StatusUpdate
from .task_status import Progress

OPEN = STATUSES.where(STATUSES.open)

# Jumps from one application to the next in the index, and reads only the oldest message of each.
WAITING = f"""
WITH RECURSIVE queue AS (
    {STATUSES.first("reply_to, created_at", OPEN, "m.reply_to, m.id")}
    UNION ALL
    SELECT next.reply_to, next.created_at FROM queue,
        LATERAL {STATUSES.first("*", f"{OPEN} AND m.reply_to > queue.reply_to", "m.reply_to, m.id")} AS next
)
SELECT reply_to, created_at FROM queue
WHERE created_at < {clock.VERIFIED} - %(seconds)s * interval '1 second'
"""  # noqa: S608 - a constant of our own

DUE = {"fresh": STATUSES.fresh, "retries": STATUSES.retries}  # the lines

_paused: Pauses[tuple[str, str]] = Pauses()  # lines and applications whose messages all fail here


@dataclass(frozen=True, kw_only=True)
class Status:
    """One message as the application sees it: `number` rises by one per task; older ones are stale.

    It is 0 while there is no task. `progress` is where the task stands, for its owner only, without
    the task's input.

    >>> def receive(messages: list[Status]):
    ...     ended = [status.reference for status in messages if status.kind is StatusKind.COMPLETED]
    >>> receive_status("hotel", receive)
    """

    workflow: str
    reference: str
    number: int
    kind: StatusKind
    at: datetime
    detail: dict[str, Any]
    progress: Progress | None = None


def owner_of(request: TaskRequest) -> str:
    """Return the application that keeps a request's workflow; if that is gone, the one its task names."""
    if workflow := registry.workflows.get(request.workflow):
        return workflow.owner_application
    about = Task.objects.filter(workflow=request.workflow, reference=request.reference)
    return about.values_list("owner_application", flat=True).first() or ""


def write_refusal(request: TaskRequest, task: UUID | None, refusal: Refusal, **more: Any) -> None:
    """Write the refusal of a request about a locked task to the application that made it, with `more` detail.

    The task's owner has it in order with its other messages; for another the number is 0.
    """
    owner_application = owner_of(request)
    detail = {"request": str(request.request), "refusal": refusal.name, **more}
    asked = request.reply_to or owner_application
    if task is not None and asked == owner_application != "":
        news = StatusUpdate(task=task, kind=StatusKind.REFUSED, detail=detail)
        owner_updates.write([task], {task: [news]}, owner_only=True)
    elif asked:
        StatusMessage.objects.create(
            reply_to=asked,
            workflow=request.workflow,
            reference=request.reference,
            number=0,
            kind=StatusKind.REFUSED,
            detail=detail,
        )


def queue_of(application: str) -> str:
    """Return the queue whose workers deliver an application's messages.

    Messages to external applications are pushed, or wait until they are fetched.
    """
    return queues.STATUS_PREFIX + application if application in registry.receivers else queues.PUSH


def waiting(seconds: float, now: datetime | None = None) -> list[tuple[str, datetime]]:
    """Return the applications whose oldest message waits for longer, and since when.

    `now` is a time at which the clock was right, in case it has jumped forward since.
    """
    return [(name, since) for name, since in sql.run(WAITING, {"seconds": seconds, "now": now})]


def deliver(application: str, limit: int) -> int:
    """Pass messages to the receiver of `application`; return how many were handled.

    They are up to `limit` fresh ones, oldest first; then as many retries, in the order of their
    times. What the receiver writes is committed together with the messages' deletion. Only messages
    to this application are ever seen. If the receiver fails on a batch, it gets the batch in parts: a
    message that it refuses is set aside until a person acts; one on which it fails otherwise is tried
    again, with backoff, before later ones of its task. Neither holds up other tasks. If the receiver
    fails on one after the other, that line is left alone for a while.
    """
    return sum(_deliver_from(line, application, limit) for line in DUE)


def _deliver_from(line: str, application: str, limit: int) -> int:
    if _paused.of((line, application)):
        return 0
    hand_over = partial(_hand_over, application)
    handled = batches.Loop(
        group=STATUSES.group,
        due=partial(_due, line, application),
        first=lambda count: hand_over(_due(line, application)[:count]),
        deal=hand_over,
        fail=_fail,
        pause=lambda name: _paused.begin((line, name), conf.FAILING_WORKFLOW_PAUSE_S),
        refusal=Refused,
        free=lambda rows: rows.exclude(Exists(_before())),
    ).take(limit)
    return 0 if _paused.of((line, application)) else handled


def _fail(number: int, error: Exception) -> None:
    fail(STATUSES, [number], error)


def _waiting(application: str) -> QuerySet[StatusMessage]:
    return StatusMessage.objects.filter(STATUSES.open, reply_to=application).order_by("id")


def _before() -> QuerySet[StatusMessage]:
    """Return the earlier messages of a task that are still to be delivered, for a subquery."""
    return StatusMessage.objects.filter(
        STATUSES.open,
        task=OuterRef("task"),
        reply_to=OuterRef("reply_to"),
        number__lt=OuterRef("number"),
    )


def _due(line: str, application: str) -> QuerySet[StatusMessage]:
    """Return what a line has that is due, in the order of `status_due`.

    A message comes after all earlier ones of its task that have failed, whose time has come or not.
    """
    rows = _waiting(application).filter(DUE[line])
    failed = _before().filter(STATUSES.timed)
    ordered = rows.order_by(*STATUSES.in_order)
    # a subquery per row: as a join it might read all failed messages
    return ordered.alias(behind=Subquery(failed.values("id")[:1])).filter(behind=None)


@transaction.atomic
def _hand_over(application: str, messages: QuerySet[StatusMessage]) -> int:
    rows = list(sql.lock(messages))
    if rows:
        receive = registry.get(registry.receivers, "receiver of status messages", application)
        receive([_as_status(row) for row in rows])
        StatusMessage.objects.filter(id__in=[row.id for row in rows]).delete()
        if switch.ON:
            transaction.on_commit(partial(trace, rows), robust=True)
    return len(rows)


def trace(arrived: Sequence[StatusMessage]) -> None:
    """Add the messages that have arrived to their tasks' traces."""
    for row in arrived:
        task = spans.Named(workflow=row.workflow, reference=row.reference)
        spans.delivered(task, row.reply_to, row.kind, row.created_at.timestamp())


def fetch(application: str, limit: int, after: int = 0) -> list[StatusMessage]:
    """Return the oldest messages to an application, beyond the one with the id `after`.

    They stay until they are acknowledged. Those of one task come in the order of their numbers.
    """
    return list(_waiting(application).filter(id__gt=after)[:limit])


def acknowledge(application: str, ids: Sequence[int]) -> int:
    """Delete messages that an application has handled; return how many existed.

    Ids of other applications' messages and of deleted ones are ignored.
    """
    return StatusMessage.objects.filter(reply_to=application, id__in=ids).delete()[0]


def as_json(row: StatusMessage) -> dict[str, Any]:
    """Return a message as external applications receive it."""
    return {
        "id": row.id,
        "workflow": row.workflow,
        "reference": row.reference,
        "number": row.number,
        "kind": row.kind,
        "at": row.created_at.isoformat(),
        "detail": row.detail,
    }


def _as_status(row: StatusMessage) -> Status:
    return Status(
        workflow=row.workflow,
        reference=row.reference,
        number=row.number,
        kind=StatusKind(row.kind),
        at=row.created_at,
        detail=row.detail,
        progress=Progress.from_json(row.progress) if row.progress else None,
    )
