"""Write status messages to the owners of tasks: each visible change, with the task's progress.

An application that keeps what was recorded with a task shows it to people from its own rows. So its
messages carry the whole progress; of one transaction there is one message for each task, the last
thing that matters, and none if there is no news.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from ..database import prepared, sql
from ..models.inbox import StatusKind
from . import task_status

if TYPE_CHECKING:
    from .outbox import StatusUpdate

# If the owner submitted the task, its messages have the task's numbers. Otherwise the count of the task
# includes `written` messages to the other application by now.
WRITE = """
WITH news AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(details)s::jsonb[],
        %(progress)s::jsonb[], %(versions)s::text[], %(written)s::int[])
        AS n (id, kind, detail, progress, version, written)
), numbered AS (
    UPDATE orchestration_task t SET owner_version = n.version,
        statuses = t.statuses + (t.reply_to = t.owner_application)::int,
        owner_lead = t.owner_lead + CASE t.reply_to
            WHEN t.owner_application THEN 0 WHEN '' THEN 1 ELSE 1 - n.written END
    FROM news n WHERE t.id = n.id AND t.owner_application <> ''
    RETURNING t.id, t.owner_application, t.workflow, t.reference, t.statuses + t.owner_lead AS number,
        n.kind, n.detail, n.progress
)
INSERT INTO orchestration_statusmessage (reply_to, workflow, reference, task_id, number, kind,
    detail, progress, created_at, reason)
SELECT owner_application, workflow, reference, id, number, kind, detail, progress, clock_timestamp(), ''
FROM numbered
RETURNING reply_to
"""


def write(
    tasks: Collection[UUID],
    news: "Mapping[UUID, Sequence[StatusUpdate]]",
    ready: Mapping[int, Mapping[str, Any]] = {},
    *,
    owner_only: bool = False,
) -> set[str]:
    """Write the changes of locked tasks to their owners; return these owners.

    `ready` are their steps that will be pending with these requests (`outbox.write`).

    `news` are the messages that the submitting applications get at the same time, by task; with
    `owner_only` they get none.
    """
    changed = task_status.snapshots(tasks, anyway=news.keys() & set(tasks), ready=ready)
    if not changed:
        return set()
    last = [_last(news.get(snapshot.task, ())) for snapshot in changed]
    columns = {
        "ids": [str(snapshot.task) for snapshot in changed],
        "kinds": [kind.value for kind, _ in last],
        "details": sql.as_json([detail for _, detail in last]),
        "progress": [msgspec.json.encode(snapshot.progress).decode() for snapshot in changed],
        "versions": [snapshot.version for snapshot in changed],
        "written": [0 if owner_only else len(news.get(snapshot.task, ())) for snapshot in changed],
    }
    return {owner_application for (owner_application,) in prepared.run(WRITE, columns)}


def _last(news: "Sequence[StatusUpdate]") -> tuple[StatusKind, Mapping[str, Any]]:
    """Return the last message about the whole task, or else the last about a step."""
    more = [update for update in news if update.kind != StatusKind.STEP]
    if last := (more or list(news))[-1:]:
        return last[0].kind, last[0].detail
    return StatusKind.STEP, {}
