"""Begin undos: cancel what was not done, undo the rest in reverse order (P11)."""

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db import transaction

from ..alerting import alerts
from ..applications.outbox import StatusUpdate
from ..database import sql
from ..decisions.compensation import plan, signature
from ..decisions.progress import Refusal, StepView
from ..incidents import tallies
from ..models import Step, Task
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..states import StepState, TaskState
from . import reports
from .create import NewStep, insert_steps
from .locked_task import Change, cancel, finish, lock, note, read_steps
from .task_state import write_states
from .turns import rejoin
from .versions import AS_DECIDED, attempts, require

SETTLE = f"""
UPDATE orchestration_step s SET probing_outcome = true, alert_id = NULL, run_after = NULL,
    resolve_by = NULL, isolated = s.isolated AND s.process_state <> 'error',
    failure_count = CASE s.process_state WHEN 'error' THEN 0 ELSE s.failure_count END,
    failed_at = CASE s.process_state WHEN 'error' THEN NULL ELSE s.failed_at END,
    own_trouble = s.own_trouble AND s.process_state <> 'error',
    extended_waits = CASE s.process_state WHEN 'error' THEN 0 ELSE s.extended_waits END,
    ended_at = CASE s.process_state WHEN 'error' THEN NULL ELSE s.ended_at END,
    pending_since = CASE s.process_state WHEN 'error' THEN clock_timestamp() ELSE s.pending_since END,
    process_state = CASE s.process_state WHEN 'error' THEN 'pending' ELSE s.process_state END
{AS_DECIDED}
    AND s.process_state IN ('waiting', 'pending', 'processing', 'error')
RETURNING s.id
"""  # noqa: S608 - a constant of our own


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
    """Begin the undo of a task; return why not, or None when it has begun.

    An irreversible effect that happened, or may have, prevents it, unless it is forced: then the effect
    remains, and the task's history names it. `force` may also name the only steps whose effects may
    remain. `seen` are the states for which it is meant: the task may have changed since its page was
    loaded. `planned` is the signature of the plan that was shown. `operation` is kept in the history.
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
    """Begin the undo of a locked task; return the steps that prevent it, none when it has begun.

    `standing` are the names of irreversible steps whose effects may remain, or None for all of them.
    The caller finishes the change.
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
    tasks = Task.objects.filter(id=change.id, state=change.state, undo_at=None)
    require(tasks.update(undo_at=DatabaseNow()), 1)
    write_states({change.id: (change.state, TaskState.UNDOING)})
    change.updates.append(StatusUpdate(task=change.id, kind=StatusKind.UNDOING))
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
    change.final_failures.clear()
    reports.undoing(change)
    return ()


def _turn(change: Change, unneeded: Sequence[int], in_doubt: Sequence[int]) -> None:
    """Cancel what was not done, and have what is in doubt settled; close the alerts of both."""
    ids = [*unneeded, *in_doubt]
    raised = Step.objects.filter(id__in=ids, process_state=StepState.ERROR)
    raised_alerts = list(raised.values_list("alert_id", flat=True))
    tallies.remove_open_failures(ids)
    cancel([change.steps[step] for step in unneeded])
    if in_doubt:
        rejoin(in_doubt)
        views = [change.steps[step] for step in in_doubt]
        require(sql.run(SETTLE, attempts(views)), views)
    alerts.close_if_unused(raised_alerts)
    for step in unneeded:
        change.moved(change.steps[step].altered(state=StepState.CANCELLED))
