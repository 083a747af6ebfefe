"""Why steps wait, by the one rule for that (`waiting`): of some steps, and how many by reason."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from ..database import clock, sql
from ..decisions.wait_reasons import MOST_AHEAD, Reason, StepFacts, Why, why
from ..models import Step
from ..models.step import claimable
from .agent_facts import agents, queued
from .agent_view import AgentView
from .holds import holds_on
from .next_step import NOT_QUEUED, why_step

# What waits, by agent: no further than the limit. What may be claimed goes along step_turn: those that go
# isolated, those of a lower priority than the first, and of the others the `lines`, before which none of
# their key is. What is left goes along step_retry and step_held.
COUNTS = f"""
SELECT p.agent, c.steps, c.lines, c.isolated, c.outranked, coalesce(r.steps, 0), coalesce(h.steps, 0)
FROM orchestration_policy p
CROSS JOIN LATERAL (
    SELECT count(*) AS steps, count(*) FILTER (WHERE isolated) AS isolated,
        count(*) FILTER (WHERE NOT isolated AND priority < top) AS outranked,
        count(DISTINCT fairness_key) FILTER (WHERE NOT isolated AND priority = top) AS lines
    FROM (SELECT *, max(priority) FILTER (WHERE NOT isolated) OVER () AS top
        FROM (SELECT priority, fairness_key, isolated FROM orchestration_step s
            WHERE s.agent = p.agent AND {claimable("s")}
            ORDER BY s.agent, s.isolated, s.priority DESC, s.turn, s.id LIMIT %(limit)s) AS first
        ) AS ranked) AS c
LEFT JOIN (SELECT agent, count(*) AS steps FROM (SELECT agent FROM orchestration_step
    WHERE process_state = 'pending' AND run_after IS NOT NULL LIMIT %(limit)s) AS first
    GROUP BY agent) AS r USING (agent)
LEFT JOIN (SELECT agent, count(*) AS steps FROM (SELECT agent FROM orchestration_step
    WHERE held_by_id IS NOT NULL AND run_after IS NULL LIMIT %(limit)s) AS first
    GROUP BY agent) AS h USING (agent)
"""  # noqa: S608 - put together from constants
LATER = datetime.max.replace(tzinfo=UTC)  # of retries that are counted, not looked at one by one


def why_each(steps: Collection[int]) -> list[tuple[Step, Why]]:
    """Return why each of some pending steps waits: a constant number of queries, none for none."""
    if not steps:
        return []
    waiting = list(Step.objects.filter(id__in=steps).select_related("task").order_by("agent", "id"))
    now = clock.database_now()
    known, places = agents(now), queued(waiting)
    held = holds_on([step.task_id for step in waiting])
    return [
        (
            step,
            why_step(
                step,
                known.get(step.agent),
                now,
                held.of(step.task_id, step.task.workflow, step.name),
                places.get(step.id, NOT_QUEUED),
            ),
        )
        for step in waiting
    ]


def waiting_because(
    known: Mapping[str, AgentView], in_flight: Mapping[str, int], now: datetime
) -> dict[tuple[str, Reason], int]:
    """Return how many steps wait, by agent and reason: one query for any number.

    Each kind is counted no further than one past `MOST_AHEAD`.
    """
    counts: Counter[tuple[str, Reason]] = Counter()
    rows = sql.run(COUNTS, {"limit": MOST_AHEAD + 1})
    for agent, steps, lines, isolated, outranked, retries, held in rows:
        if agent not in known:
            continue
        facts = known[agent].facts_with(in_flight.get(agent, 0))
        kinds = (
            (StepFacts(hold="it is held"), held),
            (StepFacts(run_after=LATER), retries),
            (StepFacts(isolated=True), isolated),
            (StepFacts(urgent=1), outranked),
            (StepFacts(), lines),
            (StepFacts(ahead=1), steps - isolated - outranked - lines),
        )
        for kind, count in kinds:
            if count:
                counts[agent, why(kind, facts, now).reason] += count
    return dict(counts)
