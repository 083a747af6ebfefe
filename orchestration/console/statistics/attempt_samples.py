"""Sample the recorded steps of an agent, or of one of its steps, for the replay of a policy."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F, Q, Sum

from ...database import clock, sql
from ...models import StepRollUp
from ...models.fields import DatabaseNow
from ...models.history import EventKind
from ...models.rollup import Span
from .policy_replay import RecordedAttempt, RecordedStep

DAYS = 7
WHOLE = 10_000  # attempts of all agents up to which every step is looked at
PIECES = 336  # otherwise the time is cut into half hours ...
OF_EACH = 30  # ... and the first attempts of each

# Uses the index attempt_by_end, so the cost does not grow with the number of attempts. Only steps whose
# first attempt is sampled count, so a step with more attempts is not likelier.
SAMPLE = """
SELECT s.id, s.direction, t.workflow, s.name
FROM generate_series(0, %(pieces)s - 1) AS piece
CROSS JOIN LATERAL (
    SELECT a.step_id, a.number FROM orchestration_attempt a
    WHERE a.ended_at >= %(now)s - %(days)s * interval '1 day' * (1 - piece / %(pieces)s::float8)
      AND a.ended_at < %(now)s - %(days)s * interval '1 day' * (1 - (piece + 1) / %(pieces)s::float8)
    ORDER BY a.ended_at LIMIT %(each)s) AS a
JOIN orchestration_step s ON s.id = a.step_id
JOIN orchestration_task t ON t.id = s.task_id
WHERE a.number = 1 AND s.agent = %(agent)s
    AND (%(step)s = '' OR (t.workflow, s.name) = (%(workflow)s, %(step)s))
"""

# Uses attempt_once, and the index of events by step.
ATTEMPTS = """
SELECT a.step_id, a.outcome, extract(epoch FROM a.ended_at - a.dispatched_at)::float8,
    extract(epoch FROM a.ended_at - a.started_at)::float8, a.tries, a.error_code,
    coalesce(bool_or(e.kind = %(excused)s AND e.attempt = a.number), false),
    coalesce(bool_or(e.kind = %(resubmitted)s AND e.attempt = a.number - 1), false)
FROM orchestration_attempt a
LEFT JOIN orchestration_event e ON e.step_id = a.step_id AND e.kind IN (%(excused)s, %(resubmitted)s)
WHERE a.step_id = ANY(%(steps)s)
GROUP BY a.id ORDER BY a.step_id, a.number
"""


@dataclass(frozen=True, kw_only=True)
class AttemptSample:
    """Recorded steps; `attempts` is the number of all attempts that they are from, by the roll-ups."""

    steps: Sequence[RecordedStep]
    attempts: int
    whole: bool
    days: int = DAYS


def sample(agent: str, workflow: str = "", step: str = "") -> AttemptSample:
    """Return the steps of an agent that began in the last days: all, or a sample of each half hour.

    With a name, only the steps of this name in this workflow.
    """
    total, counted = _totals(agent, workflow, step)
    whole = total <= WHOLE
    named = {"agent": agent, "workflow": workflow, "step": step}
    parameters = {**named, "days": DAYS, "now": clock.database_now()}
    pieces = {"pieces": 1, "each": 2 * WHOLE} if whole else {"pieces": PIECES, "each": OF_EACH}
    rows = sql.run(SAMPLE, {**parameters, **pieces})
    known = {id_: (direction, (name, of_step)) for id_, direction, name, of_step in rows}
    return AttemptSample(steps=_recorded_steps(known), attempts=counted, whole=whole)


def _totals(agent: str, workflow: str, step: str) -> tuple[int, int]:
    """Return the numbers of attempts of all agents, and of these steps, from the roll-ups of two hours."""
    since = DatabaseNow() - timedelta(days=DAYS)
    rows = StepRollUp.objects.filter(span=Span.TWO_HOURS, start__gte=since)
    each = F("done") + F("failed") + F("rejected")
    these = Q(agent=agent, workflow=workflow, step=step) if step else Q(agent=agent)
    counted = rows.aggregate(all=Sum(each, default=0), these=Sum(each, filter=these, default=0))
    return counted["all"], counted["these"]


def _recorded_steps(known: dict[int, tuple[str, tuple[str, str]]]) -> list[RecordedStep]:
    attempts: dict[int, list[RecordedAttempt]] = defaultdict(list)
    kinds = {"excused": EventKind.EXCUSED.value, "resubmitted": EventKind.RESUBMITTED.value}
    for row in sql.run(ATTEMPTS, {"steps": list(known), **kinds}):
        step, outcome, seconds, working, calls, code, excused, resubmitted = row
        attempts[step].append(
            RecordedAttempt(
                outcome=outcome, seconds=seconds, working=working, calls=calls, code=code,
                excused=excused, resubmitted=resubmitted,
            )
        )  # fmt: skip
    return [
        RecordedStep(attempts=tried, direction=known[step][0], place=known[step][1])
        for step, tried in sorted(attempts.items())
    ]
