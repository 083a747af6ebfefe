"""A scheduler computes the steps that need no agent: pending → processing → processed, or error.

All in one transaction: no other session sees one of them being processed.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.db import transaction

from .. import batches, conf, sql
from ..messages import Mode, Reply, Request
from ..payloads.keys import step_key
from ..states import LOCAL, TaskState
from .claim import STARTED
from .holds import STOOD
from .record import Recorded, record

logger = logging.getLogger(__name__)

# Along step_turn, with their tasks; of those that others have locked, not even the step. While
# everything is held, none.
DUE = f"""
SELECT s.id, s.task_id, t.workflow, t.state, s.name, s.direction, s.generation, s.attempt, s.request,
    t.reference,
    EXISTS (SELECT FROM orchestration_hold h WHERE h.until IS NULL AND h.task_id = s.task_id)
    OR EXISTS (SELECT FROM orchestration_hold h WHERE h.until IS NULL AND h.scope = 'step'
        AND h.agent = '' AND h.workflow = t.workflow AND h.step = s.name)
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE s.agent = '{LOCAL}' AND s.alone = false AND s.process_state = 'pending'
    AND s.run_after IS NULL AND s.held_by_id IS NULL AND s.id <> ALL(%(besides)s::bigint[])
    AND NOT EXISTS (SELECT FROM orchestration_hold h WHERE h.scope = 'all' AND h.until IS NULL)
ORDER BY s.priority DESC, s.turn, s.id
LIMIT %(limit)s FOR NO KEY UPDATE OF t, s SKIP LOCKED
"""  # noqa: S608 - a constant of our own

BEGUN = f"""
UPDATE orchestration_step s SET process_state = 'processing', locked_by = %(by)s,
    attempt = attempt + 1, dispatched_at = clock_timestamp(), complete_by = clock_timestamp(),
    stood_still = stood_still + {STOOD}, outcome = '', error_code = '', error_message = ''
WHERE id = ANY(%(ids)s)
"""  # noqa: S608 - the same

# They stay pending: another version of the code may know what to do with them.
PUT_OFF = """
UPDATE orchestration_step SET error_code = %(code)s, error_message = %(message)s,
    run_after = clock_timestamp() + %(wait)s * interval '1 second'
WHERE id = ANY(%(ids)s) AND process_state = 'pending'
"""

NO_FUNCTION = "no_such_function"
UNRECORDED = "not_recorded"
ROUNDS = 20  # in one turn: as many steps in a row, or batches

Perform = Callable[[str, Request, str], Reply | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
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
class Due:
    """The reply to a step's request, and the state its task was in."""

    task_state: str
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
    nothing. `by` is the computing instance.
    """
    computed = Computed()
    seen: list[int] = []
    until = time.monotonic() + conf.COMPUTED_FOR
    for _ in range(ROUNDS):
        rows = sql.run(DUE, {"besides": seen, "limit": conf.BATCH})
        if not rows:
            return computed
        found = [sql.record(Found, row) for row in rows]
        seen += [step.id for step in found]
        _deal(found, computed, by, perform, until)
        if time.monotonic() > until:
            break
    computed.more = True
    return computed


def _deal(
    found: Sequence[Found], computed: Computed, by: str, perform: Perform, until: float
) -> None:
    """Compute locked steps, the first of them and others `until` then; what is not recorded waits, alone."""
    due: list[Due] = []
    unknown: list[int] = []
    for step in found:
        if due and time.monotonic() > until:
            break
        if step.held:
            computed.held = True
        elif reply := perform(step.workflow, _request(step), by):
            due.append(Due(task_state=step.task_state, reply=reply))
        else:
            unknown.append(step.id)

    def set_aside(one: Due, error: Exception) -> None:
        if sql.is_busy(error):
            computed.blocked = True
            return
        logger.error("what a step was computed to cannot be recorded: %s", sql.first_line(error))
        _put_off([one.reply.step], UNRECORDED, sql.first_line(error))

    if unknown:
        _put_off(unknown, NO_FUNCTION, "no code that runs here declares how it is computed")
    batches.bisect(due, partial(_record, computed, by), set_aside, patience=len(due))


def _request(step: Found) -> Request:
    return Request(
        step=step.id,
        task=str(step.task),
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


def _record(computed: Computed, by: str, some: Sequence[Due]) -> int:
    """Record what steps were computed to, in a savepoint; return how many are dealt with.

    Those whose refusal needs a row that another session has locked stay pending.
    """
    fresh = {one.reply.task for one in some if one.task_state == TaskState.PENDING}
    with transaction.atomic():
        if fresh:
            sql.run(STARTED, {"ids": sorted(fresh)})
        sql.run(BEGUN, {"ids": [one.reply.step for one in some], "by": by})
        part = record([one.reply for one in some])
        transaction.set_rollback(bool(part.locked))
    if part.locked:
        computed.blocked = True
        free = [one for one in some if UUID(one.reply.task) not in part.locked]
        return len(some) - len(free) + (_record(computed, by, free) if free else 0)
    computed.recorded.add(part)
    return len(some)


def _put_off(steps: Sequence[int], code: str, message: str) -> None:
    sql.run(
        PUT_OFF,
        {"ids": list(steps), "code": code, "message": message, "wait": conf.COMPUTED_AGAIN},
    )
