"""Status messages: what an application is told, on its own private response queue (P27).

A message is a row, written in the transaction that changes its task and numbered per task; the
application's receiver takes a batch and the rows are deleted with whatever it wrote, or not at all.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from . import alerts, registry, sql
from .models import StatusMessage
from .models.alert import Severity
from .models.fields import DatabaseNow
from .models.inbox import StatusKind

logger = logging.getLogger(__name__)


WRITE = """
WITH told AS (
    UPDATE orchestration_task t SET statuses = t.statuses + 1
    FROM unnest(%(ids)s::uuid[], %(kinds)s::text[]) AS k (id, kind)
    WHERE t.id = k.id AND t.reply_to <> ''
    RETURNING t.id, t.reply_to, t.statuses, k.kind
)
INSERT INTO orchestration_statusmessage (reply_to, task_id, number, kind, detail, created_at,
    reason)
SELECT reply_to, id, statuses, kind, '{}'::jsonb, clock_timestamp(), '' FROM told
RETURNING reply_to
"""


@dataclass(frozen=True, kw_only=True)
class Status:
    """One message as the application sees it: `number` rises by one per task; older ones are stale."""

    workflow: str
    reference: str
    number: int
    kind: StatusKind
    at: datetime
    detail: dict[str, Any]


def write_first(told: Mapping[UUID, str], kind: StatusKind) -> None:
    """Write message number 1 of tasks that are being created: task id → application."""
    StatusMessage.objects.bulk_create(
        StatusMessage(task_id=task, reply_to=reply_to, number=1, kind=kind)
        for task, reply_to in told.items()
    )


def write(kinds: Mapping[UUID, StatusKind]) -> set[str]:
    """Write the next message of each task that has somebody to tell; return those applications.

    The tasks' rows are locked by the caller.
    """
    if not kinds:
        return set()
    columns = {
        "ids": [str(task) for task in kinds],
        "kinds": [kind.value for kind in kinds.values()],
    }
    return {reply_to for (reply_to,) in sql.run(WRITE, columns)}


def deliver(application: str, limit: int) -> int:
    """Hand up to `limit` messages to the receiver of `application`; return how many were dealt with.

    What the receiver writes is committed together with the messages' deletion. Only messages to
    this application are ever seen. If the receiver fails on a batch, it gets the messages one by
    one: one that it cannot take is set aside, with an alert, and never holds up the others.
    """
    try:
        with transaction.atomic():
            return _hand_over(application, _lock(application, limit))
    except sql.DATABASE_AWAY:
        raise
    except Exception as error:  # noqa: BLE001 - an application's code may raise anything
        logger.info("status messages to %s are delivered one by one: %s", application, error)
    done = 0
    while done < limit and _deliver_one(application):
        done += 1
    return done


def _lock(application: str, limit: int) -> list[StatusMessage]:
    return list(
        StatusMessage.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(reply_to=application, refused_at=None)
        .select_related("task")
        .order_by("id")[:limit]
    )


def _deliver_one(application: str) -> int:
    with transaction.atomic():
        rows = _lock(application, 1)
        try:
            with transaction.atomic():
                return _hand_over(application, rows)
        except sql.DATABASE_AWAY:
            raise
        except Exception as error:  # noqa: BLE001 - it must not hold up the others, whatever it is
            _set_aside(rows[0], f"{type(error).__name__}: {error}")
            return 1


def _hand_over(application: str, rows: Sequence[StatusMessage]) -> int:
    if rows:
        receive = registry.get(registry.receivers, "receiver of status messages", application)
        receive([_as_status(row) for row in rows])
        StatusMessage.objects.filter(id__in=[row.id for row in rows]).delete()
    return len(rows)


def _as_status(row: StatusMessage) -> Status:
    return Status(
        workflow=row.task.workflow,
        reference=row.task.reference,
        number=row.number,
        kind=StatusKind(row.kind),
        at=row.created_at,
        detail=row.detail,
    )


def _set_aside(row: StatusMessage, reason: str) -> None:
    row.refused_at = DatabaseNow()
    row.reason = reason
    row.save(update_fields=["refused_at", "reason"])
    alerts.raise_alert(
        f"status/{row.reply_to}",
        severity=Severity.CRITICAL,
        title=f"{row.reply_to}: a status message was set aside",
        detail=reason,
    )
    logger.error("status %d of %s was set aside: %s", row.number, row.task.reference, reason)
