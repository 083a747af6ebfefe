"""Compute the steps that need no agent: pending → processing → processed, or error.

All in one transaction: no other session sees a step in processing.
"""

import time
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from .. import conf
from ..database import clock, sql
from ..decisions.joining import concern
from ..decisions.progress import StepView
from ..messaging.messages import Mode, Reply, Request
from ..models import Step
from ..models.hold import HOLDS_ALL, HOLDS_STEP, HOLDS_TASK
from ..models.step import claimable
from ..payloads.keys import step_key
from ..states import LOCAL, StepState, TaskState
from . import children, moves
from .change import Change
from .following import follow
from .holds import held
from .locked_task import lock
from .replies import Recorded, apply, locked_causes

WAITING = f"""FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE s.agent = '{LOCAL}' AND s.isolated = false AND {claimable("s")}"""
IN_ORDER = "ORDER BY s.priority DESC, s.turn, s.id LIMIT %(limit)s"

# Along step_turn, with their tasks; of those that others have locked, not even the step. While
# everything is held, none. `only` are the steps of a part of a turn.
DUE = f"""
SELECT s.id, s.task_id, {HOLDS_TASK} OR {HOLDS_STEP} {WAITING}
    AND s.id <> ALL(%(excluded)s::bigint[]) AND NOT {HOLDS_ALL}
    AND (%(only)s::bigint[] IS NULL OR s.id = ANY(%(only)s::bigint[]))
{IN_ORDER} FOR NO KEY UPDATE OF t, s SKIP LOCKED
"""
LISTED = f"SELECT s.id {WAITING} {IN_ORDER}"

NO_FUNCTION = "no_such_function"
UNRECORDED = "not_recorded"
ROUNDS = 20  # in one turn: as many steps in a row, or batches

Perform = Callable[[str, Request, str], Reply | None]
Due = tuple[Change, StepView]


@dataclass(kw_only=True)
class Computed:
    """What computing left: `more` for the next turn, `held` steps, and `blocked` by rows that others have."""

    more: bool = False
    held: bool = False
    blocked: bool = False


@dataclass(kw_only=True)
class _Run:
    """One turn's computing: by whom and by what, what it decides about, and until when it may take."""

    by: str
    perform: Perform
    recorded: Recorded
    computed: Computed
    until: float
    seen: list[int]

    @property
    def is_over(self) -> bool:
        """Return whether its time is over."""
        return time.monotonic() > self.until


def compute(
    by: str,
    perform: Perform,
    recorded: Recorded,
    *,
    waiting: bool,
    only: Collection[int] | None = None,
) -> Computed:
    """Decide about the steps to compute that what was `recorded` has released, and what follows.

    With `waiting` also about those that wait in the state store, or `only` about some of these. `perform`
    returns the reply to a request of a workflow, or None if other code has to; it raises nothing. `by`
    is the computing instance. Steps for agents that become ready are noted, and the caller writes all.
    """
    run = _Run(
        by=by, perform=perform, recorded=recorded, computed=Computed(),
        until=time.monotonic() + conf.COMPUTE_BUDGET_S, seen=[],
    )  # fmt: skip
    full = waiting
    for _ in range(ROUNDS):
        due = [] if only is not None else _released(run)
        if full:
            waits, full = _waiting(run, only)
            due += waits
        if not due and not full:
            return run.computed
        _compute(due, run)
        if only is not None:
            return run.computed
        if run.is_over:
            break
    run.computed.more = True
    return run.computed


def _released(run: _Run) -> list[Due]:
    """Return the steps to compute that are ready by what was decided."""
    changes = run.recorded.touched.values()
    follow(changes)
    due: list[Due] = []
    for change in changes:
        for ready in [each for each in change.ready if each.step.agent == LOCAL]:
            change.release(ready)
            due.append((change, change.steps[ready.step.id]))
    kept_back = held([step.id for _, step in due])
    run.computed.held |= bool(kept_back)
    return [(change, step) for change, step in due if step.id not in kept_back]


def _waiting(run: _Run, only: Collection[int] | None) -> tuple[list[Due], bool]:
    """Lock the first steps that wait to be computed, and their tasks; say whether there may be more."""
    values = {
        "excluded": run.seen,
        "limit": conf.BATCH_SIZE,
        "only": None if only is None else list(only),
    }
    rows: list[tuple[int, UUID, bool]] = sql.run(DUE, values)
    run.seen += [step for step, *_ in rows]
    changes = run.recorded.changes
    changes |= lock({task for _, task, _ in rows} - changes.keys(), wait=False)
    run.computed.held |= any(is_held for *_, is_held in rows)
    free = [
        (changes[task], changes[task].steps[step])
        for step, task, is_held in rows
        if not is_held and changes[task].steps[step].state == StepState.PENDING
    ]
    return free, len(rows) == conf.BATCH_SIZE


def _compute(due: Sequence[Due], run: _Run) -> None:
    """Compute steps, the first of them and others while there is time; decide about what they gave."""
    begun, unknown = children.begin([item for item in due if concern(item[1])], run.by)
    computed = begun.replies
    for change, step in [item for item in due if not concern(item[1])]:
        if computed and run.is_over:
            break
        if reply := run.perform(change.workflow, _request(change, step), run.by):
            computed.append((change, step, reply))
        else:
            unknown.append((change, step))
    for change, step in unknown:
        _postpone(change, step, run)
    replies = [reply for *_, reply in computed]
    locked = locked_causes(replies, run.recorded.changes)
    run.computed.blocked |= bool(locked)
    free = [(change, step) for change, step, _ in computed if change.id not in locked]
    for change, step in free:
        begin(change, step, run.by)
    apply([reply for reply in replies if reply.task not in locked], run.recorded)
    if begun.new:
        _write_children(begun, [step for _, step in free], run)


def _postpone(change: Change, step: StepView, run: _Run) -> None:
    """Have a step wait for code that declares its function, or the workflow of its children."""
    run.recorded.touched[change.id] = change
    what = (
        f"the workflow {step.flow.workflow}"
        if step.flow and step.makes_children
        else "its function"
    )
    change.move(
        moves.POSTPONED, step, code=NO_FUNCTION, wait=conf.COMPUTE_RETRY_S,
        message=f"no code that runs here declares {what}",
    )  # fmt: skip


def _write_children(begun: children.Begun, steps: Sequence[StepView], run: _Run) -> None:
    """Write the children of steps that have begun; their first steps are claimed, or computed, at once."""
    agents = children.write(begun, steps)
    run.recorded.agents |= agents
    run.computed.more |= LOCAL in agents
    run.recorded.reported = True  # some may have ended, or are to be undone


def begin(change: Change, step: StepView, by: str) -> None:
    """Have an attempt of a step begin whose reply is known in the same transaction."""
    now = clock.utc_now()
    begun = step.altered(
        state=StepState.PROCESSING,
        attempt=step.attempt + 1,
        locked_by=by,
        dispatched_at=now,
        outcome="",
        error_code="",
    )
    change.move(moves.BEGUN, begun, by=by)
    if change.state == TaskState.PENDING:
        change.enter(TaskState.PROCESSING)


def _request(change: Change, step: StepView) -> Request:
    return Request(
        step=step.id,
        task=change.id,
        name=step.name,
        attempt=step.attempt + 1,
        action="",
        key=step_key(change.id, step.name, step.direction, step.generation),
        reference=change.reference,
        complete_by=0.0,
        call_timeout=0.0,
        tries=1,
        payload=deepcopy(dict(step.request)),  # the function may change it
        mode=Mode.DO,
        generation=step.generation,
        in_doubt=False,
    )


def listed() -> list[int]:
    """Return the first steps that wait to be computed."""
    return [step for (step,) in sql.run(LISTED, {"limit": conf.BATCH_SIZE})]


@transaction.atomic
def postpone(step_id: int, message: str) -> None:
    """Have a step wait whose result cannot be recorded: it keeps no other waiting."""
    task = Step.objects.filter(id=step_id).values_list("task_id", flat=True).first()
    change = lock([task], wait=False).get(task) if task else None
    step = change.steps.get(step_id) if change else None
    if step and step.state == StepState.PENDING:
        moves.POSTPONED.write(
            [step], code=[UNRECORDED], message=[message], wait=[conf.COMPUTE_RETRY_S]
        )
