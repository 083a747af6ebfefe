"""Lock the gates of agents, and read what there is to do: waiting steps, requests in flight, holds."""

from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Any, NamedTuple

from ..database import prepared
from ..decisions.fairness import Arrival
from ..models.hold import holds_agent
from ..models.low_water import (
    AGENTS,
    AGENTS_FROM,
    MAY_GO,
    Mark,
    first_in_flight,
    first_in_line,
    longest_waiting,
)
from ..states import GateState
from .gates import STATE, LockedGate, lock_and_read
from .holds import AGENT_UNTIL, ALL_UNTIL, STEPS_UNTIL
from .turns import STANDINGS, lines_of

# What takes a place at an agent, of its steps in flight. It has stopped by an attempt's complete-by: what
# has passed it takes none, though it may be long until it is counted, as when its task is locked; nor does
# what was answered, when the reply waits for a locked row (dead_letter_step, read once).
TAKES_PLACE = """AND s.complete_by > (SELECT clock_timestamp())
        AND s.id NOT IN (SELECT step FROM orchestration_deadletter WHERE step IS NOT NULL)"""

# What of these agents' policies a request needs, how many each has in flight, whether a step waits that
# may go, for how long the oldest such has waited (step_waiting), until when the agent, everything, or
# some step of a workflow was held, and where lines of its steps stand: by partial indexes, no table scan,
# from the marks on.
DEMAND = f"""
SELECT p.agent, {STATE}, p.time_allowed, p.call_timeout, p.tries, p.key_memory,
    f.all_kinds, {MAY_GO},
    {longest_waiting("extract(epoch FROM clock_timestamp() - s.pending_since)::float8")}, p.aged_after,
    f.isolated = 0 AND {first_in_line("s.id", "true")} IS NOT NULL,
    {holds_agent("p.agent")},
    extract(epoch FROM {AGENT_UNTIL})::float8, extract(epoch FROM {ALL_UNTIL})::float8,
    extract(epoch FROM {STEPS_UNTIL})::float8, extract(epoch FROM clock_timestamp())::float8,
    (SELECT json_agg(json_build_array(l.agent, l.priority, l.key, l.head, l.last, l.weight, l.now))
        FROM ({STANDINGS}) l WHERE l.agent = p.agent)
FROM orchestration_policy p JOIN orchestration_gate g USING (agent)
JOIN {AGENTS_FROM} USING (agent)
CROSS JOIN LATERAL (SELECT count(*) AS all_kinds, count(*) FILTER (WHERE isolated) AS isolated
    FROM {first_in_flight("s.isolated", "ALL", more=TAKES_PLACE)} AS s) AS f
WHERE p.agent = ANY(%(agents)s::text[])
ORDER BY p.agent
"""  # noqa: S608 - a constant of our own

IN_FLIGHT_SINCE = f"""
SELECT count(*) FROM (SELECT %(agent)s::text AS agent, to_timestamp(%(since)s) AS dispatched_at) AS m
CROSS JOIN LATERAL {first_in_flight("s.id", "ALL", more=TAKES_PLACE)} AS s
"""  # noqa: S608 - the same


class Demand(NamedTuple):
    """One agent: the limits of its requests (seconds, calls), its load, and what waits for it.

    `has_isolated`: an isolated step is due, and none is in flight.
    """

    agent: str
    time_allowed: float
    call_timeout: float
    tries: int
    key_memory: float | None
    in_flight: int
    has_due: bool
    waited: float | None
    aged_after: float
    has_isolated: bool
    held: bool
    held_until: float | None
    all_held_until: float | None
    steps_held_until: float | None
    now: float
    standings: Sequence[Sequence[Any]] | None
    mark: Mark

    @property
    def has_aged(self) -> bool:
        """Return whether one of these has waited for long."""
        return self.waited is not None and self.waited > self.aged_after

    @property
    def stopped(self) -> bool:
        """Return whether a hold on its agent, or on everything, is in force."""
        return self.held or self.everything_held

    @property
    def everything_held(self) -> bool:
        """Return whether a hold on everything is in force."""
        return self.all_held_until == inf

    @property
    def steps_held(self) -> bool:
        """Return whether a hold on a step of a workflow is in force."""
        return self.steps_held_until == inf

    def was_held(self, since: float | None) -> bool:
        """Return whether a hold on more than a task was in force after `since`."""
        ends = (self.held_until, self.all_held_until, self.steps_held_until)
        return since is not None and any(end is not None and end > since for end in ends)


def demands(
    agents: Collection[str], arrivals: Iterable[Arrival] = ()
) -> list[tuple[Demand, LockedGate]]:
    """Lock the gates of agents; return what there is to do for those that are locked now.

    Each comes with the standings of its lines that `arrivals` join.
    """
    marks = AGENTS.of(agents)
    values = AGENTS.parameters(marks) | lines_of(arrivals)
    with AGENTS.watching():
        locked = lock_and_read(agents, DEMAND, values)
    return [
        (Demand._make([gate.agent, *demand, marks.get(gate.agent, AGENTS.head)]), gate)
        for gate, demand in locked
    ]


def in_flight(demand: Demand, gate: LockedGate) -> int:
    """Return how many requests are out; unless all is well, of those since the breaker opened."""
    since = gate.view.opened_at
    if gate.view.state == GateState.CLOSED or since is None:
        return demand.in_flight
    ((count,),) = prepared.run(IN_FLIGHT_SINCE, {"agent": demand.agent, "since": since})
    return int(count)
