"""Write status messages in the transaction that changes their tasks (P27).

`status_messages` and `push` deliver them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ..database import prepared, sql
from ..models import StatusMessage, Submission
from ..models.inbox import StatusKind
from . import owner_updates

# To the applications that submitted the tasks; `owner_updates` writes to the tasks' owners.
WRITE = """
WITH news AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(messages)s::jsonb[]) AS n (id, messages)
), counted AS (
    UPDATE orchestration_task t SET statuses = t.statuses + jsonb_array_length(n.messages)
    FROM news n
    WHERE t.id = n.id AND t.reply_to NOT IN ('', t.owner_application)
    RETURNING t.id, t.workflow, t.reference, t.reply_to, n.messages,
        t.statuses - jsonb_array_length(n.messages) AS before
)
INSERT INTO orchestration_statusmessage (reply_to, workflow, reference, task_id, number, kind,
    detail, created_at, reason)
SELECT c.reply_to, c.workflow, c.reference, c.id, c.before + m.position, m.message ->> 'kind',
    m.message -> 'detail', clock_timestamp(), ''
FROM counted c, jsonb_array_elements(c.messages) WITH ORDINALITY AS m (message, position)
RETURNING reply_to
"""


@dataclass(frozen=True, kw_only=True)
class StatusUpdate:
    """One status message still to be written; `detail` is JSON."""

    task: UUID
    kind: StatusKind
    detail: Mapping[str, Any] = field(default_factory=dict)


def write(
    news: Sequence[StatusUpdate],
    owned: Collection[UUID] = (),
    ready: Mapping[int, Mapping[str, Any]] = {},
) -> set[str]:
    """Write the next messages of locked tasks; return the applications that have new ones.

    `owned` are the tasks that have an owner: it gets a message if anything that it sees has changed.
    `ready` are steps of these that this transaction makes pending, or dispatches, with their requests.
    """
    receivers: set[str] = set()
    by_task: dict[UUID, list[StatusUpdate]] = {}
    for update in news:
        by_task.setdefault(update.task, []).append(update)
    if by_task:
        columns = {
            "ids": [str(task) for task in by_task],
            "messages": sql.as_json(
                [{"kind": update.kind.value, "detail": update.detail} for update in updates]
                for updates in by_task.values()
            ),
        }
        receivers = {reply_to for (reply_to,) in prepared.run(WRITE, columns)}
    return receivers | owner_updates.write(owned, by_task, ready) if owned else receivers


def write_without_task(submissions: Iterable[Submission], kind: StatusKind) -> None:
    """Write messages about submissions without a task, to the submitting application and the owner."""
    StatusMessage.objects.bulk_create(
        StatusMessage(
            reply_to=name,
            workflow=submission.workflow,
            reference=submission.reference,
            number=0,
            kind=kind,
        )
        for submission in submissions
        for name in sorted({submission.reply_to, submission.owner_application} - {""})
    )
