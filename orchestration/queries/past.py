"""What was recorded of an agent's steps in the last days: for the what-if of its policy."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F, Sum

from .. import sql
from ..models import StepRollUp
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..models.rollup import Span
from ..whatif import Story, Tried
from .agents import database_now

DAYS = 7
WHOLE = 10_000  # attempts of all agents up to which every step is looked at
PIECES = 336  # otherwise so many pieces of the time (half hours) ...
OF_EACH = 30  # ... and the first attempts of each

# Along attempt_by_end, so that the cost does not depend on how much happened; then the step by its
# key. The steps are those whose first attempt lies there, so that none is met twice as likely.
SAMPLE = """
SELECT s.id, s.direction
FROM generate_series(0, %(pieces)s - 1) AS piece
CROSS JOIN LATERAL (
    SELECT a.step_id, a.number FROM orchestration_attempt a
    WHERE a.ended_at >= %(now)s - %(days)s * interval '1 day' * (1 - piece / %(pieces)s::float8)
      AND a.ended_at < %(now)s - %(days)s * interval '1 day' * (1 - (piece + 1) / %(pieces)s::float8)
    ORDER BY a.ended_at LIMIT %(each)s) AS a
JOIN orchestration_step s ON s.id = a.step_id
WHERE a.number = 1 AND s.agent = %(agent)s
"""

# By attempt_once; and the few events of these steps that matter, by their step.
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
class Past:
    """Recorded steps; `attempts` is how many attempts the agent had in all, as far as is counted."""

    stories: Sequence[Story]
    attempts: int
    whole: bool
    days: int = DAYS


def past(agent: str) -> Past:
    """Return the steps of an agent that began in the last days: all of them, or some of each time."""
    total, of_agent = _totals(agent)
    whole = total <= WHOLE
    wanted = {"agent": agent, "days": DAYS, "now": database_now()}
    pieces = {"pieces": 1, "each": 2 * WHOLE} if whole else {"pieces": PIECES, "each": OF_EACH}
    found = dict(sql.run(SAMPLE, {**wanted, **pieces}))
    return Past(
        stories=_stories(found),
        attempts=of_agent,
        whole=whole,
    )


def _totals(agent: str) -> tuple[int, int]:
    """Return how many attempts all agents and this one had, from the roll-ups of two hours."""
    since = DatabaseNow() - timedelta(days=DAYS)
    rows = StepRollUp.objects.filter(span=Span.TWO_HOURS, start__gte=since).values_list("agent")
    counted = dict(rows.annotate(all=Sum(F("done") + F("failed") + F("rejected"))))
    return sum(counted.values()), counted.get(agent, 0)


def _stories(found: dict[int, str]) -> list[Story]:
    attempts: dict[int, list[Tried]] = defaultdict(list)
    kinds = {"excused": EventKind.EXCUSED.value, "resubmitted": EventKind.RESUBMITTED.value}
    for row in sql.run(ATTEMPTS, {"steps": list(found), **kinds}):
        step, outcome, seconds, working, calls, code, excused, afresh = row
        attempts[step].append(
            Tried(
                outcome=outcome, seconds=seconds, working=working, calls=calls, code=code,
                excused=excused, afresh=afresh,
            )
        )  # fmt: skip
    return [
        Story(attempts=tried, direction=found[step]) for step, tried in sorted(attempts.items())
    ]
