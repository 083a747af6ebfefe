"""Write status messages in the transaction that changes their tasks (P27).

`status_messages` and `push` deliver them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ..database import sql
from ..models import StatusMessage, Submission
from ..models.inbox import StatusKind
from . import owner_updates

# To the applications that submitted the tasks; `owner_updates` writes to the tasks' owners.
WRITE = """
WITH news AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(details)s::jsonb[])
        WITH ORDINALITY AS n (id, kind, detail, position)
), counted AS (
    UPDATE orchestration_task t SET statuses = t.statuses + c.count
    FROM (SELECT id, count(*) FROM news GROUP BY id) AS c
    WHERE t.id = c.id AND t.reply_to NOT IN ('', t.owner_application)
    RETURNING t.id, t.workflow, t.reference, t.reply_to, t.statuses - c.count AS before
), numbered AS (
    SELECT c.*, n.kind, n.detail, c.before + row_number() OVER (
        PARTITION BY c.id ORDER BY n.position) AS number
    FROM counted c JOIN news n USING (id)
)
INSERT INTO orchestration_statusmessage (reply_to, workflow, reference, task_id, number, kind,
    detail, created_at, reason)
SELECT reply_to, workflow, reference, id, number, kind, detail, clock_timestamp(), ''
FROM numbered ORDER BY id, number
RETURNING reply_to
"""


@dataclass(frozen=True, kw_only=True)
class StatusUpdate:
    """One status message still to be written; `detail` is JSON."""

    task: UUID
    kind: StatusKind
    detail: Mapping[str, Any] = field(default_factory=dict)


def write(news: Sequence[StatusUpdate], owned: Collection[UUID] = ()) -> set[str]:
    """Write the next messages of locked tasks; return the applications that have new ones.

    `owned` are the tasks that have an owner: it gets a message if anything that it sees has changed.
    """
    receivers: set[str] = set()
    if news:
        columns = {
            "ids": [str(one.task) for one in news],
            "kinds": [one.kind.value for one in news],
            "details": sql.as_json([one.detail for one in news]),
        }
        receivers = {reply_to for (reply_to,) in sql.run(WRITE, columns)}
    return receivers | owner_updates.write(owned, news) if owned else receivers


def write_without_task(submissions: Iterable[Submission], kind: StatusKind) -> None:
    """Write messages about submissions without a task, to the submitting application and the owner."""
    StatusMessage.objects.bulk_create(
        StatusMessage(
            reply_to=name, workflow=one.workflow, reference=one.reference, number=0, kind=kind
        )
        for one in submissions
        for name in sorted({one.reply_to, one.owner_application} - {""})
    )
