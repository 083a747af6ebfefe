"""Write steps to be: nothing → pending or waiting (P5, P20)."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from msgspec import to_builtins

from ..database import prepared, sql
from ..decisions.fairness import Arrival, Line
from ..decisions.progress import StepPlan
from ..states import StepState
from .turns import next_turns

STEPS = """
INSERT INTO orchestration_step (task_id, name, direction, agent, action, after, request,
    process_state, pending_since, run_after, failure_count, attempt, generation, priority, fairness_key, turn,
    outcome, error_code, error_message, undo_action, undo_request, irreversible, charges, loads,
    flow, ended_at)
SELECT task, name, direction, agent, action, after::varchar[], request,
    state, CASE WHEN state IN ('pending', 'awaiting') THEN clock_timestamp() END,
    run_after, 0, 0, 1, priority, fairness_key, turn, '', '', '', undo_action,
    nullif(undo_request, 'null'), irreversible, nullif(charges, 'null'), nullif(loads, 'null'),
    nullif(flow, 'null'), CASE state WHEN 'skipped' THEN clock_timestamp() END
FROM unnest(%(tasks)s::uuid[], %(names)s::text[], %(directions)s::text[], %(agents)s::text[],
    %(actions)s::text[], %(after)s::text[], %(requests)s::jsonb[], %(states)s::text[],
    %(priorities)s::smallint[], %(fairness_keys)s::text[], %(turns)s::bigint[],
    %(undo_actions)s::text[], %(undo_requests)s::jsonb[], %(irreversible)s::text[],
    %(charges)s::jsonb[], %(loads)s::jsonb[], %(run_after)s::timestamptz[],
    %(flows)s::jsonb[])
    WITH ORDINALITY AS s (task, name, direction, agent, action, after, request, state, priority,
        fairness_key, turn, undo_action, undo_request, irreversible, charges, loads, run_after,
        flow, position)
ORDER BY position
"""


class NewStep(NamedTuple):
    """A step to be, with what it has of its task; `run_after` is the earliest time of a first one."""

    task: UUID
    priority: int
    fairness_key: str
    plan: StepPlan
    run_after: datetime | None = None


def insert_steps(new: Sequence[NewStep], *, again: bool = False) -> None:
    """Write steps to be; `again` says that their tasks have begun: those that are ready go next."""
    if parts := inserting(new, again=again):
        prepared.run_all(parts)


def inserting(new: Sequence[NewStep], *, again: bool = False) -> list[prepared.Part]:
    """Return the statement that writes steps to be, if there are any."""
    if not new:
        return []
    plans = [step.plan for step in new]
    arrivals = [
        Arrival(Line(step.plan.agent, step.priority, step.fairness_key), again)
        for step in new
        if step.plan.state == StepState.PENDING
    ]
    turns = iter(next_turns(arrivals))
    values = {
        "tasks": [str(step.task) for step in new],
        "names": [plan.name for plan in plans],
        "agents": [plan.agent for plan in plans],
        "actions": [plan.action for plan in plans],
        "after": [sql.as_array(plan.after) for plan in plans],
        "requests": sql.as_json([plan.request for plan in plans]),
        "states": [plan.state.value for plan in plans],
        "priorities": [step.priority for step in new],
        "fairness_keys": [step.fairness_key for step in new],
        "turns": [next(turns) if plan.state == StepState.PENDING else 0 for plan in plans],
        "directions": [plan.direction for plan in plans],
        "undo_actions": [plan.undo_action for plan in plans],
        "undo_requests": sql.as_json([plan.undo_request for plan in plans]),
        "irreversible": [plan.irreversible for plan in plans],
        "charges": sql.as_json([plan.charges for plan in plans]),
        "loads": sql.as_json([plan.loads or None for plan in plans]),
        "run_after": [step.run_after for step in new],
        "flows": sql.as_json([plan.flow and to_builtins(plan.flow) for plan in plans]),
    }
    return [prepared.Part(STEPS, values)]
