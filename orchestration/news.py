"""What applications are told of tasks, written in the transaction that changes them (P27).

`status` delivers it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from . import keeping, sql
from .models import StatusMessage, Submission
from .models.inbox import StatusKind

# Of those that submitted tasks; the tasks' keepers are told by `keeping`.
WRITE = """
WITH news AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(details)s::jsonb[])
        WITH ORDINALITY AS n (id, kind, detail, position)
), counted AS (
    UPDATE orchestration_task t SET statuses = t.statuses + c.count
    FROM (SELECT id, count(*) FROM news GROUP BY id) AS c
    WHERE t.id = c.id AND t.reply_to NOT IN ('', t.keeper)
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
class News:
    """What is to be told of a task; `detail` is JSON."""

    task: UUID
    kind: StatusKind
    detail: Mapping[str, Any] = field(default_factory=dict)


def write(news: Sequence[News], kept: Collection[UUID] = ()) -> set[str]:
    """Write the next messages of locked tasks that have somebody to tell; return those applications.

    `kept` are those of the tasks that have a keeper: it is told if anything that it sees has changed.
    """
    told: set[str] = set()
    if news:
        columns = {
            "ids": [str(one.task) for one in news],
            "kinds": [one.kind.value for one in news],
            "details": sql.as_json([one.detail for one in news]),
        }
        told = {reply_to for (reply_to,) in sql.run(WRITE, columns)}
    return told | keeping.tell(kept, news) if kept else told


def write_aside(submissions: Iterable[Submission], kind: StatusKind) -> None:
    """Write messages about submissions that are no tasks, to those that follow them."""
    StatusMessage.objects.bulk_create(
        StatusMessage(
            reply_to=name, workflow=one.workflow, reference=one.reference, number=0, kind=kind
        )
        for one in submissions
        for name in sorted({one.reply_to, one.keeper} - {""})
    )
