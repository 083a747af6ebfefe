"""A scheduler records replies: processing → processed, or error, or failed (P8, P23, P25)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import transaction

from .. import sql
from ..messages import Reply
from ..models import Event, Step, Task
from ..models.history import EventKind
from ..progression import Refusal, Released, StepView, refuse_reply, release
from ..states import Outcome, StepState
from .settle import Trouble, settle_tasks, to_error

# The attempt's history and the step's new state in one statement: both parts see the step as it
# was before, so who had dispatched it, and when, comes from the row itself.
ENDED = """
WITH reply AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(outcomes)s::text[],
        %(results)s::jsonb[], %(codes)s::text[], %(messages)s::text[], %(tries)s::int[],
        %(started)s::float8[], %(by)s::text[])
    AS r (id, attempt, outcome, result, code, message, tries, started, by)
), history AS (
    INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent,
        dispatched_at, started_at, ended_at, outcome, tries, error_code, error_message)
    SELECT s.id, s.attempt, s.generation, s.locked_by, r.by, s.dispatched_at,
        to_timestamp(r.started), clock_timestamp(), r.outcome, r.tries, r.code, r.message
    FROM reply r JOIN orchestration_step s USING (id)
)
UPDATE orchestration_step s SET
    process_state = CASE r.outcome WHEN 'done' THEN 'processed' ELSE 'processing' END,
    locked_by = NULL,
    complete_by = CASE r.outcome WHEN 'done' THEN NULL ELSE clock_timestamp() END,
    ended_at = clock_timestamp(),
    outcome = r.outcome,
    result = CASE r.outcome WHEN 'done' THEN r.result ELSE s.result END,
    error_code = r.code, error_message = r.message
FROM reply r
WHERE s.id = r.id AND s.attempt = r.attempt
  AND s.process_state = 'processing' AND s.locked_by IS NOT NULL
"""

RELEASED = """
UPDATE orchestration_step s SET process_state = 'pending', request = r.request
FROM unnest(%(ids)s::bigint[], %(requests)s::jsonb[]) AS r (id, request)
WHERE s.id = r.id AND s.process_state = 'waiting'
"""


@dataclass(kw_only=True)
class Recorded:
    """What recording a batch of replies did."""

    accepted: int = 0
    refused: list[tuple[Reply, Refusal]] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)  # whose window or backlog changed
    applications: set[str] = field(default_factory=set)  # who has a status message waiting


@dataclass(kw_only=True)
class _Change:
    """One task of the batch: its data, its steps as they stand, and what follows."""

    data: dict[str, Any]
    state: str
    steps: dict[int, StepView] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)


@transaction.atomic(savepoint=False)
def record(replies: Sequence[Reply]) -> Recorded:
    """Record the outcomes of attempts, make successors pending, finish tasks.

    Guarded by state and attempt under the task's lock: of several replies to one attempt the first
    lands, and one to an attempt that was given up changes nothing and is kept as an event.
    A transient or unknown outcome leaves the step `processing` with its deadline passed: the
    supervisor counts it, and decides (P24, P26).
    """
    recorded = Recorded()
    changes = _lock({UUID(reply.task) for reply in replies})
    accepted: list[Reply] = []
    for reply in replies:
        change = changes.get(UUID(reply.task))
        step = change.steps.get(reply.step) if change else None
        refusal = refuse_reply(step, reply.attempt)
        if refusal or change is None or step is None:
            recorded.refused.append((reply, refusal or Refusal.NO_SUCH_STEP))
            continue
        accepted.append(reply)
        recorded.agents.add(step.agent)
        change.steps[step.id] = _after(step, reply)
        if reply.outcome == Outcome.REJECTED:
            change.troubles.append(
                Trouble(step=step.id, code=reply.code, message=reply.message, attempt=step.attempt)
            )
    recorded.accepted = len(accepted)
    _write_ended(accepted)
    touched = {UUID(reply.task) for reply in accepted}
    _release([change for task, change in changes.items() if task in touched], recorded)
    to_error([trouble for change in changes.values() for trouble in change.troubles], by="agent")
    recorded.applications = settle_tasks(
        {
            task: (change.state, [step.state for step in change.steps.values()])
            for task, change in changes.items()
            if task in touched
        }
    )
    _keep_refused(recorded.refused, changes)
    return recorded


def _lock(tasks: Collection[UUID]) -> dict[UUID, _Change]:
    """Lock the tasks in the order of their ids; read all their steps."""
    rows = Task.objects.select_for_update(no_key=True).filter(id__in=tasks).order_by("id")
    changes = {
        task: _Change(data=data, state=state)
        for task, data, state in rows.values_list("id", "data", "state")
    }
    names = tuple(StepView.__dataclass_fields__)
    columns = [{"state": "process_state"}.get(name, name) for name in names]
    for task, *values in Step.objects.filter(task__in=changes).values_list("task_id", *columns):
        step = StepView(**dict(zip(names, values, strict=True)))
        changes[task].steps[step.id] = step
    return changes


def _after(step: StepView, reply: Reply) -> StepView:
    """Return the step as it is once the reply is recorded."""
    if reply.outcome == Outcome.DONE:
        return replace(step, state=StepState.PROCESSED, locked_by=None, result=reply.result)
    if reply.outcome == Outcome.REJECTED:
        return replace(step, state=StepState.ERROR, locked_by=None)
    return replace(step, locked_by=None)


def _write_ended(replies: Sequence[Reply]) -> None:
    if not replies:
        return
    sql.run(
        ENDED,
        {
            "ids": [reply.step for reply in replies],
            "attempts": [reply.attempt for reply in replies],
            "outcomes": [reply.outcome for reply in replies],
            "results": sql.as_json([reply.result for reply in replies]),
            "codes": [reply.code[:100] for reply in replies],
            "messages": [reply.message for reply in replies],
            "tries": [reply.tries for reply in replies],
            "started": [reply.started for reply in replies],
            "by": [reply.by[:80] for reply in replies],
        },
    )


def _release(changes: Iterable[_Change], recorded: Recorded) -> None:
    """Make the successors of what was done pending: waiting → pending."""
    ready: list[Released] = []
    for change in changes:
        released, broken = release(change.steps.values(), change.data)
        for step in released:
            view = change.steps[step.id]
            change.steps[step.id] = replace(view, state=StepState.PENDING)
            recorded.agents.add(view.agent)
        for problem in broken:
            view = change.steps[problem.id]
            change.steps[problem.id] = replace(view, state=StepState.ERROR)
            change.troubles.append(
                Trouble(
                    step=problem.id, code="request_not_built", message=problem.reason, attempt=0
                )
            )
        ready += released
    if ready:
        sql.run(
            RELEASED,
            {
                "ids": [step.id for step in ready],
                "requests": sql.as_json([step.request for step in ready]),
            },
        )


def _keep_refused(refused: Sequence[tuple[Reply, Refusal]], changes: dict[UUID, _Change]) -> None:
    """Keep what a late or repeated reply said: it may matter to whoever looks into the task."""
    events = defaultdict(list)
    for reply, refusal in refused:
        change = changes.get(UUID(reply.task))
        if change and reply.step in change.steps:
            said = f"{reply.outcome} {reply.code}".strip()
            events[reply.step, reply.attempt, f"{refusal.value}; it said: {said}"].append(reply)
    Event.objects.bulk_create(
        Event(
            task_id=UUID(replies[0].task),
            step_id=step,
            kind=EventKind.REPLY_REFUSED,
            actor=replies[0].by,
            attempt=attempt,
            reason=reason,
        )
        for (step, attempt, reason), replies in events.items()
    )
