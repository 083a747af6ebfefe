"""Compute the steps that need no agent: pending → processing → processed, or error.

All in one transaction: no other session sees a step in processing.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.db import transaction

from .. import conf
from ..database import batches, sql
from ..messaging.messages import Mode, Reply, Request
from ..models.hold import HOLDS_ALL, HOLDS_STEP, HOLDS_TASK
from ..models.step import claimable
from ..payloads.keys import step_key
from ..states import LOCAL, TaskState
from ..tracing.subject import about_task
from .claim import STARTED
from .holds import HELD_SECONDS
from .replies import Recorded, record
from .versions import AS_DECIDED, attempts, require

logger = logging.getLogger(__name__)

# Along step_turn, with their tasks; of those that others have locked, not even the step. While
# everything is held, none.
DUE = f"""
SELECT s.id, s.task_id, t.workflow, t.state, s.name, s.direction, s.generation, s.attempt, s.request,
    t.reference,
    {HOLDS_TASK} OR {HOLDS_STEP}
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE s.agent = '{LOCAL}' AND s.isolated = false AND {claimable("s")}
    AND s.id <> ALL(%(excluded)s::bigint[]) AND NOT {HOLDS_ALL}
ORDER BY s.priority DESC, s.turn, s.id
LIMIT %(limit)s FOR NO KEY UPDATE OF t, s SKIP LOCKED
"""  # noqa: S608 - a constant of our own

BEGUN = f"""
UPDATE orchestration_step s SET process_state = 'processing', locked_by = %(by)s,
    attempt = s.attempt + 1, dispatched_at = clock_timestamp(), complete_by = clock_timestamp(),
    held_seconds = held_seconds + {HELD_SECONDS}, outcome = '', error_code = '', error_message = ''
{AS_DECIDED} AND s.process_state = 'pending'
RETURNING s.id
"""  # noqa: S608 - the same

# They stay pending: another version of the code may know what to do with them.
POSTPONE = f"""
UPDATE orchestration_step s SET error_code = %(code)s, error_message = %(message)s,
    run_after = clock_timestamp() + %(wait)s * interval '1 second'
{AS_DECIDED} AND s.process_state = 'pending'
RETURNING s.id
"""  # noqa: S608 - a constant of our own

NO_FUNCTION = "no_such_function"
UNRECORDED = "not_recorded"
ROUNDS = 20  # in one turn: as many steps in a row, or batches

Perform = Callable[[str, Request, str], Reply | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class DueStep:
    """A step to compute, locked like its task; its columns."""

    id: int
    task: UUID
    workflow: str
    task_state: str
    name: str
    direction: str
    generation: int
    attempt: int
    request: str
    reference: str
    held: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalReply:
    """A step, and the reply to its request."""

    step: DueStep
    reply: Reply


@dataclass(kw_only=True)
class Computed:
    """What computing did; `more` wait for the next turn, and `blocked` for rows that others have."""

    recorded: Recorded = field(default_factory=Recorded)
    more: bool = False
    held: bool = False
    blocked: bool = False


def compute(by: str, perform: Perform) -> Computed:
    """Compute the steps that are due, and what becomes due by that, in the caller's transaction.

    `perform` returns the reply to a request of a workflow, or None if other code has to; it raises
    nothing. `by` is the computing instance. Steps for agents that become ready by that are returned, and
    are for the caller to write.
    """
    computed = Computed()
    seen: list[int] = []
    until = time.monotonic() + conf.COMPUTE_BUDGET_S
    for _ in range(ROUNDS):
        rows = sql.run(DUE, {"excluded": seen, "limit": conf.BATCH_SIZE})
        if not rows:
            return computed
        steps = [sql.record(DueStep, row) for row in rows]
        seen += [step.id for step in steps]
        _compute_batch(steps, computed, by, perform, until)
        if time.monotonic() > until:
            break
    computed.more = True
    return computed


def _compute_batch(
    steps: Sequence[DueStep], computed: Computed, by: str, perform: Perform, until: float
) -> None:
    """Compute locked steps, the first of them and others `until` then; what is not recorded waits, alone."""
    replies: list[LocalReply] = []
    unknown: list[DueStep] = []
    for step in steps:
        if replies and time.monotonic() > until:
            break
        if step.held:
            computed.held = True
        elif reply := perform(step.workflow, _request(step), by):
            replies.append(LocalReply(step=step, reply=reply))
        else:
            unknown.append(step)

    def set_aside(local: LocalReply, error: Exception) -> None:
        if sql.is_busy(error):
            computed.blocked = True
            return
        why, about = sql.first_line(error), about_task(local.reply.task, local.reply.attempt)
        logger.error("what a step was computed to cannot be recorded: %s", why, extra=about)
        _put_off([local.step], UNRECORDED, why)

    if unknown:
        _put_off(unknown, NO_FUNCTION, "no code that runs here declares how it is computed")
    batches.bisect(replies, partial(_record, computed, by), set_aside, patience=len(replies))


def _request(step: DueStep) -> Request:
    return Request(
        step=step.id,
        task=step.task,
        name=step.name,
        attempt=step.attempt + 1,
        action="",
        key=step_key(step.task, step.name, step.direction, step.generation),
        reference=step.reference,
        complete_by=0.0,
        call_timeout=0.0,
        tries=1,
        payload=json.loads(step.request),
        mode=Mode.DO,
        generation=step.generation,
        in_doubt=False,
    )


def _record(computed: Computed, by: str, batch: Sequence[LocalReply]) -> int:
    """Record what steps were computed to, in a savepoint; return how many are dealt with.

    Those whose refusal needs a row that another session has locked stay pending.
    """
    steps = [local.step for local in batch]
    fresh = {step.task for step in steps if step.task_state == TaskState.PENDING}
    with transaction.atomic():
        if fresh:
            sql.run(STARTED, {"ids": sorted(map(str, fresh))})
        require(sql.run(BEGUN, {**attempts(steps), "by": by}), steps)
        part = record([local.reply for local in batch], claimed_next=True)
        transaction.set_rollback(bool(part.locked))
    if part.locked:
        computed.blocked = True
        free = [local for local in batch if local.reply.task not in part.locked]
        return len(batch) - len(free) + (_record(computed, by, free) if free else 0)
    computed.recorded.add(part)
    return len(batch)


def _put_off(steps: Sequence[DueStep], code: str, message: str) -> None:
    values = {"code": code, "message": message, "wait": conf.COMPUTE_RETRY_S}
    require(sql.run(POSTPONE, {**attempts(steps), **values}), steps)
