"""An undo begins: what was not done is cancelled, what was is taken back, in reverse order (P11)."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

from django.db import transaction

from .. import alerts, incidents, sql
from ..models import Step, Task
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..news import News
from ..progression import Refusal, StepView
from ..states import StepState, TaskState
from ..undoing import plan, signature
from .changes import Change, cancel, finish, lock, note, read_steps
from .create import NewStep, insert_steps
from .settle import write_states
from .turns import stand_again

SETTLE = """
UPDATE orchestration_step SET settling = true, alert_id = NULL, run_after = NULL,
    mend_by = NULL, alone = alone AND process_state <> 'error',
    failure_count = CASE process_state WHEN 'error' THEN 0 ELSE failure_count END,
    failed_at = CASE process_state WHEN 'error' THEN NULL ELSE failed_at END,
    own_trouble = own_trouble AND process_state <> 'error',
    rounds = CASE process_state WHEN 'error' THEN 0 ELSE rounds END,
    ended_at = CASE process_state WHEN 'error' THEN NULL ELSE ended_at END,
    pending_since = CASE process_state WHEN 'error' THEN clock_timestamp() ELSE pending_since END,
    process_state = CASE process_state WHEN 'error' THEN 'pending' ELSE process_state END
WHERE id = ANY(%(ids)s)
"""


@transaction.atomic
def undo(
    task_id: UUID,
    *,
    actor: str,
    reason: str,
    force: bool | Collection[str] = False,
    seen: Collection[str] = tuple(TaskState),
    planned: str | None = None,
    operation: int | None = None,
) -> Refusal | None:
    """Have a whole task undone; return why not, or None when the undo has begun.

    Something irreversible that was done, or may have been, stops it before it starts, unless it is
    forced: then that stands, and the task's history names it. `force` may also name the steps that
    may stand: no other then. `seen` are the states for which it is meant: whoever looked a while ago
    did not mean what the task has become since.
    `planned` is the signature of the very plan that somebody saw. `operation` is kept in the
    history.
    """
    change = lock([task_id]).get(task_id)
    if change is None:
        return Refusal.NO_SUCH_TASK
    if change.undoing:
        return Refusal.NOT_UNDOABLE
    if change.state not in seen:
        return Refusal.CHANGED
    if planned is not None and planned != signature(plan(change.steps.values())):
        return Refusal.CHANGED
    named: Collection[str] = () if isinstance(force, bool) else force
    standing = None if force is True else named
    if begin(change, actor=actor, reason=reason, standing=standing, operation=operation):
        return Refusal.IRREVERSIBLE
    finish([change], by=actor)
    return None


def begin(
    change: Change,
    *,
    actor: str,
    reason: str,
    standing: Collection[str] | None = (),
    operation: int | None = None,
) -> Sequence[StepView]:
    """Turn a locked task around; return the steps that forbid it, none when it was done.

    `standing` are the names of steps that may stand although they cannot be undone, or None for
    whatever cannot. The caller finishes the change.
    """
    wanted = plan(change.steps.values())
    names = [step.name for step in wanted.standing]
    forbidding = [
        step for step in wanted.standing if not (standing is None or step.name in standing)
    ]
    if forbidding:
        named = ", ".join(step.name for step in forbidding)
        why = f"{named} cannot be undone; asked for because: {reason}"
        note(change, None, EventKind.UNDO_REFUSED, by=actor, reason=why).save()
        return forbidding
    Task.objects.filter(id=change.id).update(undo_at=DatabaseNow())
    write_states({change.id: TaskState.UNDOING})
    change.news.append(News(task=change.id, kind=StatusKind.UNDOING))
    change.state, change.undoing = TaskState.UNDOING, True
    note(
        change, None, EventKind.UNDO, by=actor, reason=reason, operation=operation,
        forced=bool(names), standing=names,
    ).save()  # fmt: skip
    _turn(change, wanted.cancel, wanted.settle)
    insert_steps(
        [NewStep(change.id, change.priority, change.fairness_key, step) for step in wanted.undo],
        again=True,
    )
    read_steps({change.id: change})
    change.troubles.clear()
    return ()


def _turn(change: Change, unneeded: Sequence[int], in_doubt: Sequence[int]) -> None:
    """Cancel what was not done, and have what is in doubt settled; close the alerts of both."""
    ids = [*unneeded, *in_doubt]
    raised = Step.objects.filter(id__in=ids, process_state=StepState.ERROR)
    suffering = list(raised.values_list("alert_id", flat=True))
    incidents.relieve(ids)
    cancel(unneeded)
    if in_doubt:
        stand_again(in_doubt)
        sql.run(SETTLE, {"ids": list(in_doubt)})
    alerts.close_if_healed(suffering)
    for step in unneeded:
        change.moved(replace(change.steps[step], state=StepState.CANCELLED))
