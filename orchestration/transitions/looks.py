"""Ask services for the results of what they accepted: a look writes no history, and changes one row."""

from collections import defaultdict
from collections.abc import Collection, Sequence

import msgspec
from django.db import transaction

from ..database import prepared, sql
from ..decisions.progress import StepView
from ..messaging.messages import Mode, Reply, Request
from ..models import Wait
from ..models.wait import ASKABLE
from ..payloads.keys import step_key
from ..states import Outcome, StepState
from . import moves, reported
from .change import Change
from .waits import Report

# Of each agent at most a tenth of its window is asked at a time (wait_asked), the longest due first
# (wait_look): looks are many, and no work waits behind them.
DUE = f"""
WITH due AS MATERIALIZED (
    SELECT w.id FROM {ASKABLE}
    CROSS JOIN LATERAL (
        SELECT w.id FROM orchestration_wait w
        WHERE w.agent = p.agent AND w.look_at <= (SELECT clock_timestamp())
        ORDER BY w.look_at
        LIMIT least(%(at_most)s, greatest(0, greatest(1, p."window" / 10) - (
            SELECT count(*) FROM orchestration_wait o WHERE o.agent = p.agent
                AND o.asked_at > (SELECT clock_timestamp()) - p.time_allowed * interval '1 second')))
        FOR NO KEY UPDATE SKIP LOCKED) w
    WHERE p.agent = ANY(%(agents)s::text[])
)
UPDATE orchestration_wait w SET looks = w.looks + 1, asked_at = clock_timestamp(),
    look_at = CASE WHEN NOT w.asked_last AND w.look > 0
        THEN clock_timestamp() + greatest(w.look, p.time_allowed) * interval '1 second' END
FROM due, orchestration_step s, orchestration_task t, orchestration_policy p
WHERE w.id = due.id AND s.id = w.step_id AND t.id = w.task_id AND p.agent = w.agent
    AND s.process_state = 'awaiting'
RETURNING s.id, t.id::text, s.name, s.direction, s.agent, s.action, s.attempt, s.generation,
    t.reference, s.request::text, s.result::text, w.looks, p.call_timeout, p.tries,
    extract(epoch FROM clock_timestamp() + p.time_allowed * interval '1 second')::float8
"""  # noqa: S608 - put together from constants
ANSWERED = """
UPDATE orchestration_wait w SET asked_at = NULL, look = coalesce(r.look, w.look),
    look_at = CASE WHEN w.look_at IS NOT NULL THEN least(w.look_at,
        clock_timestamp() + nullif(coalesce(r.look, w.look), 0) * interval '1 second') END
FROM unnest(%(steps)s::bigint[], %(looks)s::float8[]) AS r (step, look) WHERE w.step_id = r.step
"""


@transaction.atomic
def look(agents: Collection[str], limit: int) -> dict[str, list[Request]]:
    """Return the questions to send now, by agent, after the commit; one that is lost is asked again.

    At most `limit` in all, or one of each agent.
    """
    requests: dict[str, list[Request]] = defaultdict(list)
    for (
        step, task, name, direction, agent, action, attempt, generation, reference, payload, accepted, number,
        call_timeout, tries, complete_by,
    ) in prepared.run(DUE, {"agents": list(agents), "at_most": max(1, limit // len(agents))}):  # fmt: skip
        requests[agent].append(
            Request(
                step=step,
                task=task,
                name=name,
                attempt=attempt,
                action=action,
                key=step_key(task, name, direction, generation),
                reference=reference,
                complete_by=complete_by,
                call_timeout=call_timeout,
                tries=tries,
                payload=msgspec.json.decode(payload),
                mode=Mode.LOOK.value,
                generation=generation,
                in_doubt=False,
                look=number,
                accepted=msgspec.json.decode(accepted) if accepted else {},
            )
        )  # fmt: skip
    return requests


def answer(looked: Sequence[tuple[Reply, Change, StepView]]) -> list[Change]:
    """Decide about what services answer about what they accepted; return the tasks that this changes.

    An answer to an earlier look, or of a step that has ended, says nothing any more.
    """
    asked = dict(
        Wait.objects.filter(step__in=[step.id for *_, step in looked]).values_list("step", "looks")
    )
    ended: list[tuple[Change, StepView, Report]] = []
    changed: list[Change] = []
    answered: list[Reply] = []
    for reply, change, step in looked:
        of_this = reply.attempt == step.attempt and reply.generation in {0, step.generation}
        if step.state != StepState.AWAITING or not of_this or asked.get(step.id) != reply.look:
            continue
        answered.append(reply)
        if reply.outcome in {Outcome.DONE, Outcome.REJECTED}:
            report = Report(
                id=f"look {reply.look}", actor=reply.by, outcome=reply.outcome,
                result=reply.result, code=reply.code, message=reply.message,
            )  # fmt: skip
            ended.append((change, step, report))
        elif reply.outcome == Outcome.LATER and reply.result != step.result:
            change.move(moves.ACCEPTED, step.altered(result=reply.result), result=reply.result)
            changed.append(change)
    if answered:
        looks = [reply.wait.look if reply.wait else None for reply in answered]
        sql.run(ANSWERED, {"steps": [reply.step for reply in answered], "looks": looks})
    reported.apply(ended)
    return [*changed, *(change for change, *_ in ended)]
