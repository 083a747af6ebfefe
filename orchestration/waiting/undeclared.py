"""The agents for which steps wait, though no code of this release declares them."""

from collections.abc import Iterable

from ..database import sql
from ..states import LOCAL

NEXT_AGENT = """(SELECT s.agent FROM orchestration_step s
    WHERE s.process_state = 'pending' AND s.agent > o.agent AND {before} ORDER BY s.agent LIMIT 1)"""

# The agents of pending steps, but for the given ones: between these, from one to the next by step_waiting,
# so that the steps of the given ones are passed over, however many there are, or were a moment ago.
UNDECLARED = f"""
WITH RECURSIVE others AS (
    SELECT name AS agent, lead(name) OVER (ORDER BY name) AS before
    FROM unnest(%(agents)s::varchar[]) AS name
    UNION ALL
    SELECT n.agent, o.before FROM others o CROSS JOIN LATERAL (
        {NEXT_AGENT.format(before="s.agent < o.before")} UNION ALL
        {NEXT_AGENT.format(before="o.before IS NULL")}) AS n
)
SELECT agent FROM others WHERE agent <> ALL(%(agents)s::varchar[])
"""  # noqa: S608 - put together from constants


def undeclared_agents(declared: Iterable[str]) -> list[str]:
    """Return the agents for which steps are pending, without the declared ones and `LOCAL`."""
    return [agent for (agent,) in sql.run(UNDECLARED, {"agents": [LOCAL, *declared]})]
