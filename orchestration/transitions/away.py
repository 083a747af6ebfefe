"""Refuse steps whose service has been away for as long as they say, so that others do their work (P25)."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import transaction

from .. import registry
from ..applications.status_messages import queue_of
from ..database import clock, sql
from ..decisions.flow import AWAY
from ..decisions.progress import StepView
from ..messaging import queues
from ..messaging.messages import Reply
from ..states import Health, Outcome, StepState
from .local_steps import begin
from .locked_task import lock
from .replies import Recorded, apply, locked_causes
from .settle import release_ready

# Steps that have waited for their time since their service answered last, and that were not done: what is in
# doubt stays, as it may have been. Along step_away, for each time that is declared for an agent whose breaker
# is not closed; a step that was stored with a longer time waits for it.
GIVEN_UP = """FROM unnest(%(away_agents)s::text[], %(away_after)s::float8[]) AS d (agent, after)
JOIN orchestration_gate g ON g.agent = d.agent AND g.state <> 'closed'
CROSS JOIN LATERAL (
    SELECT s.id, s.task_id FROM orchestration_step s
    WHERE s.agent = d.agent AND s.process_state = 'pending' AND s.flow ? 'away_after'
        AND s.pending_since <= (SELECT clock_timestamp()) - d.after * interval '1 second'
        AND s.pending_since > coalesce(g.answered_at, '-infinity')
        AND (s.flow->>'away_after')::float8 <= d.after AND NOT s.in_doubt AND s.held_by_id IS NULL
        AND s.direction = 'do' {more}
    ORDER BY s.pending_since LIMIT {most}) s"""
ANY = f"EXISTS (SELECT {GIVEN_UP.format(more='', most=1)})"
NOT_TRIED = "AND s.task_id <> ALL(%(excluded)s::uuid[])"
TASKS = f"SELECT s.task_id {GIVEN_UP.format(more=NOT_TRIED, most='%(limit)s')}"
OF_THESE = "AND s.task_id = ANY(%(tasks)s::uuid[])"
STEPS = f"SELECT DISTINCT s.id, s.task_id {GIVEN_UP.format(more=OF_THESE, most='ALL')}"


def declared() -> dict[str, Any]:
    """Return for how long steps wait for which agents, as the parameters of a search."""
    known = {
        (str(step.agent), float(step.away_after))
        for workflow in registry.workflows.values()
        for step in workflow.steps
        if step.away_after is not None
    }
    return {
        "away_agents": [agent for agent, _ in sorted(known)],
        "away_after": [after for _, after in sorted(known)],
    }


def waiting_in_vain(limit: int, excluded: Collection[UUID] = ()) -> list[UUID]:
    """Return tasks with steps whose service has been away for too long."""
    values = {"limit": limit, "excluded": [str(task) for task in excluded], **declared()}
    return list(dict.fromkeys(task for (task,) in sql.run(TASKS, values)))[:limit]


@transaction.atomic
def give_up(tasks: Collection[UUID], *, by: str) -> int:
    """Refuse such steps of tasks; return how many. Skips what others have locked."""
    recorded = Recorded(changes=lock(tasks, wait=False))
    rows = sql.run(STEPS, {"tasks": [str(task) for task in recorded.changes], **declared()})
    due = [(recorded.changes[task], recorded.changes[task].steps[step]) for step, task in rows]
    replies = {
        step.id: _refusal(step, by)
        for change, step in due
        if step.state == StepState.PENDING and not change.undoes(step)
    }
    locked = locked_causes(replies.values(), recorded.changes)
    for change, step in due:
        if step.id in replies and change.id not in locked:
            begin(change, step, by)
    refused = [reply for reply in replies.values() if reply.task not in locked]
    apply(refused, recorded)
    recorded.write()
    release_ready(recorded.ready)
    names = map(queue_of, recorded.applications)
    queues.ring_after_commit(queues.SCHEDULER, *names)
    return len(refused)


def _refusal(step: StepView, by: str) -> Reply:
    """Return the reply that the agent would have sent if it could know."""
    waited = step.flow.away_after if step.flow else 0
    now = clock.now()
    return Reply(
        step=step.id, task=step.task, attempt=step.attempt + 1, outcome=Outcome.REJECTED.value, result={},
        code=AWAY, message=f"its service has answered nothing for {waited:g} s", tries=0, started=now,
        ended=now, by=by, generation=step.generation, in_doubt=False, health=Health.NOTHING.value,
    )  # fmt: skip
