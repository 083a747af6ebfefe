"""Give steps that become pending their turn in the line of their agent."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..database import prepared
from ..decisions.fairness import Arrival, Line, give_turns, positions
from ..models.low_water import AGENTS
from ..models.step import claimable

# Two probes of an index for each line: the head along step_turn, the key's end along step_line. No row
# is locked, and none is kept for this: of batches that are written at the same time none sees the
# others', so a key gets at most as many turns in a stride as there are writers.
STANDINGS = f"""
SELECT l.agent, l.priority, l.key,
    (SELECT s.turn FROM orchestration_step s
        WHERE s.agent = l.agent AND s.isolated = false AND {claimable("s")}
        AND s.priority = l.priority AND s.turn >= l.from_turn
        ORDER BY s.turn LIMIT 1) AS head,
    (SELECT s.turn FROM orchestration_step s
        WHERE s.agent = l.agent AND s.priority = l.priority AND s.fairness_key = l.key
        AND {claimable("s")} AND s.turn >= l.from_turn
        ORDER BY s.turn DESC LIMIT 1) AS last,
    coalesce((SELECT w.weight FROM orchestration_fairnessweight w WHERE w.key = l.key), 1) AS weight,
    (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint AS now
FROM unnest(%(of_agents)s::text[], %(priorities)s::smallint[], %(keys)s::text[],
    %(lines_from)s::bigint[]) AS l (agent, priority, key, from_turn)
"""  # noqa: S608 - constants of our own


class StandingStep(NamedTuple):
    """A pending step as a sweep reads it: its version, and the line that it stands in."""

    id: int
    state: str
    attempt: int
    generation: int
    agent: str
    priority: int
    fairness_key: str

    @property
    def line(self) -> Line:
        """Return its line."""
        return Line(self.agent, self.priority, self.fairness_key)


def next_turns(arrivals: Sequence[Arrival]) -> list[int]:
    """Return the turns of steps that become pending, in order."""
    if not arrivals:
        return []
    lines = lines_of(arrivals)
    with AGENTS.watching():
        standings = prepared.run(STANDINGS, lines)
    return give_turns(arrivals, positions(standings))


def lines_of(arrivals: Iterable[Arrival]) -> dict[str, list[Any]]:
    """Return the lines of arrivals as values of `STANDINGS`."""
    lines = sorted({arrival.line for arrival in arrivals})
    marks = AGENTS.of({line.agent for line in lines})
    return {
        "of_agents": [line.agent for line in lines],
        "priorities": [line.priority for line in lines],
        "keys": [line.key for line in lines],
        "lines_from": [marks.get(line.agent, AGENTS.head).turn for line in lines],
    }
