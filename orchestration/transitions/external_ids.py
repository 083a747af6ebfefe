"""What services call what they accepted of steps: written with it, and looked for by reports of it."""

from collections.abc import Sequence
from uuid import UUID

from ..database import prepared, sql
from ..decisions.progress import StepView
from ..messaging import queues
from ..models import TaskRequest
from ..models.request import KEPT_FOR_S, UNKNOWN_ID
from .change import Change

# The look for a step by an id, and the write of a step's id with its look for a kept report, exclude each
# other until their commits. Otherwise a report that comes in between finds no step, and no step finds it.
# Each of them locks its ids in one order.
KIND, KEY = 1516895235, "hashtext(agent || '/' || external_id)"
REPORTED = """unnest(%(ids)s::bigint[], %(agents)s::text[], %(external_ids)s::text[])
    AS a (id, agent, external_id)"""
LOCK_FOR_REPORT = f"""
SELECT pg_advisory_xact_lock({KIND}, key)
FROM (SELECT DISTINCT {KEY} AS key FROM {REPORTED} ORDER BY key) AS keys
"""  # noqa: S608 - constants
WRITE = f"""
WITH accepted AS MATERIALIZED (
    SELECT *, pg_advisory_xact_lock_shared({KIND}, key) FROM (
        SELECT *, {KEY} AS key
        FROM unnest(%(steps)s::bigint[], %(tasks)s::uuid[], %(agents)s::text[], %(external_ids)s::text[],
            %(attempts)s::int[]) AS a (step, task, agent, external_id, attempt)
        ORDER BY key) AS sorted)
INSERT INTO orchestration_externalid (step_id, task_id, agent, external_id, attempt, accepted_at)
SELECT step, task, agent, external_id, attempt, clock_timestamp() FROM accepted
ON CONFLICT (step_id, external_id) DO NOTHING
"""  # noqa: S608 - constants
# Reports that no step was found for are requests about their tasks from now on: along request_kept.
TAKE_KEPT = f"""
UPDATE orchestration_taskrequest q SET workflow = a.workflow, reference = a.reference, step = a.step,
    done_at = NULL, refusal = ''
FROM unnest(%(agents)s::text[], %(external_ids)s::text[], %(workflows)s::text[], %(references)s::text[],
    %(names)s::text[]) AS a (agent, external_id, workflow, reference, step)
WHERE q.agent = a.agent AND q.external_id = a.external_id AND q.refusal = '{UNKNOWN_ID}'
    AND q.created_at > (SELECT clock_timestamp()) - {KEPT_FOR_S} * interval '1 second'
RETURNING q.id
"""  # noqa: S608 - constants
# Along external_id_of_agent; the last that awaits its result, or else the last that was accepted. Without
# any, a report is refused, and carried out all the same if a step is accepted under the id within the hour.
FIND = f"""
UPDATE orchestration_taskrequest q SET workflow = coalesce(s.workflow, ''),
    reference = coalesce(s.reference, q.reference), step = coalesce(s.name, ''),
    done_at = CASE WHEN s.name IS NULL THEN clock_timestamp() END,
    refusal = CASE WHEN s.name IS NULL THEN '{UNKNOWN_ID}' ELSE '' END, problem = '', reason = ''
FROM {REPORTED} LEFT JOIN LATERAL (
    SELECT t.workflow, t.reference, s.name
    FROM orchestration_externalid e JOIN orchestration_step s ON s.id = e.step_id
    JOIN orchestration_task t ON t.id = e.task_id
    WHERE e.agent = a.agent AND e.external_id = a.external_id
    ORDER BY s.process_state = 'awaiting' DESC, e.id DESC LIMIT 1) AS s ON true
WHERE q.id = a.id
"""  # noqa: S608 - constants
# along step_once and external_id_once
OF_TASK = """
SELECT e.step_id FROM orchestration_step s JOIN orchestration_externalid e ON e.step_id = s.id
WHERE s.task_id = %(task)s::uuid AND e.external_id = %(external_id)s
"""


def write(accepted: Sequence[tuple[Change, StepView, str]]) -> bool:
    """Write what services call what they accepted; return whether any of it has been reported already.

    What has been is a request that is due after the commit.
    """
    if not accepted:
        return False
    keys = {
        "agents": [step.agent for _, step, _ in accepted],
        "external_ids": [external_id for *_, external_id in accepted],
    }
    steps = {
        "steps": [step.id for _, step, _ in accepted],
        "tasks": [str(change.id) for change, *_ in accepted],
        "attempts": [step.attempt for _, step, _ in accepted],
    }
    targets = {
        "workflows": [change.workflow for change, *_ in accepted],
        "references": [change.reference for change, *_ in accepted],
        "names": [step.name for _, step, _ in accepted],
    }
    # the second takes its snapshot under the lock of the first
    parts = (
        prepared.Part(WRITE, {**keys, **steps}),
        prepared.Part(TAKE_KEPT, {**keys, **targets}),
    )
    return bool(prepared.run_all(parts))


def find_steps(reports: Sequence[TaskRequest]) -> None:
    """Have reports by services' own ids be about the steps that were accepted under them.

    None is accepted under these ids until the commit. What is found is due after it.
    """
    if not reports:
        return
    keys = {
        "ids": [report.id for report in reports],
        "agents": [report.agent for report in reports],
        "external_ids": [report.external_id for report in reports],
    }
    sql.run(LOCK_FOR_REPORT, keys)
    sql.run(FIND, keys)
    queues.ring_after_commit(queues.SUBMISSION)


def steps_of(task: UUID, external_id: str) -> set[int]:
    """Return the steps of a task that were accepted under an id."""
    values = {"task": str(task), "external_id": external_id}
    return {step for (step,) in sql.run(OF_TASK, values)}
