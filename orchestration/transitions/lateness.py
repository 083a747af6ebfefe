"""What follows as a wait is over: a beginning, a reminder, a last question, an error, an undo (P21)."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from ..applications.outbox import StatusUpdate
from ..database import sql
from ..decisions.flow import LATE, PASS
from ..models import Wait
from ..models.fields import DatabaseNow
from ..models.inbox import StatusKind
from ..states import LOCAL, OnRejection, StepState
from . import clock_jump, moves, waits
from .change import Change
from .locked_task import lock
from .rejections import Rejection, reject
from .settle import finish

NO_RESULT = "no result came in time"

# The service is asked once more; the wait ends once that has had its time.
ASK_LAST = """
UPDATE orchestration_wait w SET asked_last = true, look_at = clock_timestamp(),
    due_at = clock_timestamp() + coalesce(p.time_allowed, 10) * interval '1 second'
FROM orchestration_wait o LEFT JOIN orchestration_policy p ON p.agent = o.agent
WHERE o.id = w.id AND w.id = ANY(%(ids)s::bigint[])
"""
REMINDED = """
UPDATE orchestration_wait w SET reminded = w.reminded + 1, due_at = r.due_at
FROM unnest(%(ids)s::bigint[], %(due_at)s::timestamptz[]) AS r (id, due_at) WHERE w.id = r.id
"""


def _due(now: datetime) -> QuerySet[Wait]:
    """Return what is due at `now`, along wait_due, and also by the clock in case it has gone back since."""
    rows = Wait.objects.filter(due_at__lte=now).filter(due_at__lte=DatabaseNow())
    return clock_jump.due(rows, "due_at")


def late_tasks(limit: int, excluded: Collection[UUID] = (), *, now: datetime) -> list[UUID]:
    """Return the tasks whose waits have a reminder or their end due, oldest first, except `excluded`."""
    rows = _due(now).exclude(task__in=excluded).order_by("due_at")
    return list(dict.fromkeys(rows.values_list("task_id", flat=True)[:limit]))


@transaction.atomic
def end_waits(tasks: Collection[UUID], *, by: str, now: datetime) -> int:
    """Have steps of tasks begin whose time has come, remind of what is awaited, or decide what follows as it
    is late; return for how many waits.

    Skips tasks that others have locked: the next sweep finds them.
    """
    changes = lock(tasks, wait=False)
    late: list[tuple[Change, Wait]] = []
    asked: list[Wait] = []
    begun = 0
    reminded: list[Wait] = []  # constraint wait_ends: they have both times
    for wait in _due(now).filter(task__in=changes).order_by("id"):
        change = changes[wait.task_id]
        step = change.steps[wait.step_id]
        if step.state == StepState.WAITING:
            change.times[step.id] = True
            begun += 1
            continue
        if step.state != StepState.AWAITING or wait.report is not None:
            continue  # it has ended, or a scheduler is about to record how
        if wait.ends_by and wait.ends_by > now and not wait.asked_last:
            reminded.append(wait)
            detail = {"step": step.name, "until": wait.ends_by.isoformat()}
            change.updates.append(
                StatusUpdate(task=change.id, kind=StatusKind.REMINDER, detail=detail)
            )
        elif wait.look is not None and not wait.asked_last:
            asked.append(wait)
        else:
            late.append((change, wait))
    _remind(reminded, changes)
    if asked:
        sql.run(ASK_LAST, {"ids": [wait.id for wait in asked]})
    _end(late, by=by)
    finish(changes.values(), by=by)
    return len(reminded) + len(asked) + len(late) + begun


def _remind(reminded: Sequence[Wait], changes: dict[UUID, Change]) -> None:
    """Note which reminders were given, and when the next one is due."""
    if not reminded:
        return
    due_at = []
    for wait in reminded:
        flow = changes[wait.task_id].steps[wait.step_id].flow
        remind = flow.remind if flow else ()
        due_at.append(waits.next_due(wait.ends_by, wait.awaited_at, remind, wait.reminded + 1))
    sql.run(REMINDED, {"ids": [wait.id for wait in reminded], "due_at": due_at})


def _end(late: Sequence[tuple[Change, Wait]], *, by: str) -> None:
    """Decide what follows for steps whose result is late: their workflows say that.

    What a service accepted may have its effect: it is in doubt, and is not passed over.
    """
    rejected = []
    for change, wait in late:
        step = change.steps[wait.step_id]
        follows = step.flow.late if step.flow else OnRejection.ERROR.value
        accepted = step.agent != LOCAL
        if follows == PASS and (accepted or change.undoes(step)):
            follows = OnRejection.ERROR.value
        after = step.altered(error_code=LATE, in_doubt=accepted)
        change.move(
            moves.REPORTED, after, outcome=step.outcome, result=step.result, code=LATE,
            message=NO_RESULT, in_doubt=accepted,
        )  # fmt: skip
        if follows == PASS:
            change.skip(after)
        else:
            rejected.append(Rejection(change, after, LATE, NO_RESULT, follows=follows))
    reject(rejected, by=by)
