"""What the keeper of tasks is told: each change that it can see, with where the task stands then.

An application that keeps what was recorded with a task shows it to people from its own rows. So its
messages carry the whole progress; of one transaction there is one message for each task, the last
thing that matters, and none if there is no news.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from . import sql, standing
from .models.inbox import StatusKind

if TYPE_CHECKING:
    from .news import News

# A keeper that submitted the task itself has the numbers of the task; of the messages to another
# application `written` are in the task's count by now.
TELL = """
WITH news AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(details)s::jsonb[],
        %(progress)s::jsonb[], %(versions)s::text[], %(written)s::int[])
        AS n (id, kind, detail, progress, version, written)
), numbered AS (
    UPDATE orchestration_task t SET told = n.version,
        statuses = t.statuses + (t.reply_to = t.keeper)::int,
        keeper_lead = t.keeper_lead + CASE t.reply_to
            WHEN t.keeper THEN 0 WHEN '' THEN 1 ELSE 1 - n.written END
    FROM news n WHERE t.id = n.id AND t.keeper <> ''
    RETURNING t.id, t.keeper, t.workflow, t.reference, t.statuses + t.keeper_lead AS number
)
INSERT INTO orchestration_statusmessage (reply_to, workflow, reference, task_id, number, kind,
    detail, progress, created_at, reason)
SELECT t.keeper, t.workflow, t.reference, t.id, t.number, n.kind, n.detail, n.progress,
    clock_timestamp(), ''
FROM numbered t JOIN news n USING (id) ORDER BY t.id
RETURNING reply_to
"""


def tell(tasks: Collection[UUID], news: "Sequence[News]" = (), *, alone: bool = False) -> set[str]:
    """Write what is news of locked tasks to their keepers; return these.

    `news` is what the applications that submitted them are told at the same time, but for news that
    are for the keepers `alone`.
    """
    said: dict[UUID, list[News]] = {}
    for one in news:
        said.setdefault(one.task, []).append(one)
    found = standing.snapshots(tasks, anyway=said.keys() & set(tasks))
    if not found:
        return set()
    last = [_last(said.get(one.task, ())) for one in found]
    columns = {
        "ids": [str(one.task) for one in found],
        "kinds": [kind.value for kind, _ in last],
        "details": sql.as_json([detail for _, detail in last]),
        "progress": sql.as_json([_sent(one.progress) for one in found]),
        "versions": [one.version for one in found],
        "written": [0 if alone else len(said.get(one.task, ())) for one in found],
    }
    return {keeper for (keeper,) in sql.run(TELL, columns)}


def _last(news: "Sequence[News]") -> tuple[StatusKind, Mapping[str, Any]]:
    """Return what matters of the news of a task: the last of those that are more than one step's."""
    more = [one for one in news if one.kind != StatusKind.STEP]
    if last := (more or list(news))[-1:]:
        return last[0].kind, last[0].detail
    return StatusKind.STEP, {}


def _sent(progress: standing.Progress) -> dict[str, Any]:
    """Return a task's progress without the input, which its keeper knows."""
    return {name: value for name, value in progress.as_json().items() if name != "data"}
