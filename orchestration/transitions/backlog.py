"""Read an agent's backlog: waiting steps, requests in flight, and the next steps."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

from .. import conf
from ..database import prepared, sql
from ..decisions.fairness import Arrival, for_aged
from ..models.hold import holds_agent
from ..models.low_water import AGENTS, AGENTS_FROM, Mark, longest_waiting
from ..models.step import claimable
from ..payloads.placeholders import Loads
from ..states import GateState
from .candidates import aged, fresh, in_turn, least
from .gates import FIRST, STATE, LockedGate, lock_and_read
from .holds import AGENT_UNTIL, ALL_UNTIL, STEPS_UNTIL
from .locked_task import Ready
from .turns import STANDINGS, lines_of

# What an agent has at work, of the steps `s`. It has stopped by an attempt's complete-by: what has passed
# it takes no place, though it may be long until it is counted, as when its task is locked; nor does
# what was answered, when the reply waits for a locked row (dead_letter_step, read once).
AT_WORK = """s.process_state = 'processing' AND s.locked_by IS NOT NULL
        AND s.complete_by > (SELECT clock_timestamp())
        AND s.id NOT IN (SELECT step FROM orchestration_deadletter WHERE step IS NOT NULL)"""

# What of these agents' policies a request needs, how many each has in flight, for how long the oldest
# step that may go has waited (NULL: there is none; step_waiting), until when the agent, everything, or
# some step of a workflow was held, and where lines of its steps stand: by partial indexes, no table scan,
# from the marks on.
DEMAND = f"""
SELECT p.agent, {STATE}, p.time_allowed, p.call_timeout, p.tries, p.key_memory,
    f.all_kinds,
    {longest_waiting("extract(epoch FROM clock_timestamp() - s.pending_since)::float8")}, p.aged_after,
    f.isolated = 0 AND {FIRST.format(agent="p.agent", isolated="AND isolated")} IS NOT NULL,
    {holds_agent("p.agent")},
    extract(epoch FROM {AGENT_UNTIL})::float8, extract(epoch FROM {ALL_UNTIL})::float8,
    extract(epoch FROM {STEPS_UNTIL})::float8, extract(epoch FROM clock_timestamp())::float8,
    (SELECT json_agg(json_build_array(l.agent, l.priority, l.key, l.head, l.last, l.weight, l.now))
        FROM ({STANDINGS}) l WHERE l.agent = p.agent)
FROM orchestration_policy p JOIN orchestration_gate g USING (agent)
JOIN {AGENTS_FROM} USING (agent)
CROSS JOIN LATERAL (SELECT count(*) AS all_kinds, count(*) FILTER (WHERE s.isolated) AS isolated
    FROM orchestration_step s WHERE s.agent = p.agent AND s.dispatched_at >= m.dispatched_at
        AND {AT_WORK}) AS f
WHERE p.agent = ANY(%(agents)s::text[])
ORDER BY p.agent
"""  # noqa: S608 - a constant of our own

IN_FLIGHT_SINCE = f"""
SELECT count(*) FROM orchestration_step s WHERE s.agent = %(agent)s AND {AT_WORK}
    AND s.dispatched_at >= to_timestamp(%(since)s)
"""  # noqa: S608 - the same

MOST_ROUNDS = 5  # of looking past held steps, in one turn; the rest has the next


class Demand(NamedTuple):
    """One agent: the limits of its requests (seconds, calls), its load, and what waits for it.

    `lone` says that a step is due that goes alone, and that none such is in flight.
    """

    agent: str
    time_allowed: float
    call_timeout: float
    tries: int
    key_memory: float | None
    in_flight: int
    waited: float | None
    aged_after: float
    lone: bool
    held: bool
    held_until: float | None
    all_held_until: float | None
    steps_held_until: float | None
    now: float
    standings: Sequence[Sequence[Any]] | None
    mark: Mark

    @property
    def wanted(self) -> bool:
        """Return whether a step waits that may go."""
        return self.waited is not None

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """A pending step, locked, and so is its task; `of_held_task` is None if that was never held."""

    id: int
    task: Any
    workflow: str
    task_state: str
    name: str
    direction: str
    action: str
    generation: int
    attempt: int
    request: Mapping[str, Any]
    loads: Loads | None
    reference: str
    since: float | None
    of_held_task: bool | None
    is_held: bool | None
    turn: int | None = None  # of one that was waiting until now

    @property
    def held(self) -> bool:
        """Return whether a hold on its task, or on its name, is in force."""
        return bool(self.of_held_task or self.is_held)


# The queues in which held steps were met (agent, isolated), and whether places were left for them.
Met = dict[tuple[str, bool], bool]

Statement = Callable[[], str]

PENDING = tuple(field.name for field in fields(Pending))[:-1]

# The turns of the next steps that may go: along step_turn, from the index alone.
NEXT = f"""
SELECT priority, turn FROM orchestration_step s
WHERE agent = %(agent)s AND NOT isolated AND {claimable("s")} AND turn >= %(from_turn)s
ORDER BY agent, isolated, priority DESC, turn, id LIMIT %(limit)s
"""  # noqa: S608 - a constant of our own


def demands(
    agents: Collection[str], arrivals: Iterable[Arrival] = ()
) -> list[tuple[Demand, LockedGate]]:
    """Lock the gates of agents; return what there is to do for those that are locked now.

    Each comes with the standings of its lines that `arrivals` join.
    """
    marks = AGENTS.of(agents)
    given = AGENTS.given(marks) | lines_of(arrivals)
    with AGENTS.watching():
        found = lock_and_read(agents, DEMAND, given)
    return [
        (Demand(gate.agent, *demand, marks.get(gate.agent, AGENTS.head)), gate)
        for gate, demand in found
    ]


def in_flight(demand: Demand, gate: LockedGate) -> int:
    """Return how many requests are out; unless all is well, of those since the breaker opened."""
    since = gate.view.opened_at
    if gate.view.state == GateState.CLOSED or since is None:
        return demand.in_flight
    ((count,),) = sql.run(IN_FLIGHT_SINCE, {"agent": demand.agent, "since": since})
    return int(count)


def take(
    demand: Demand, gate: LockedGate, places: int, met: Met, ready: Sequence[Ready] = ()
) -> tuple[list[Pending], list[Ready]]:
    """Lock up to `places` steps that may go, at most one of them of those that go alone.

    Of `ready`, which no other session sees yet, return those whose turn is among the next.

    That one is first, so that a full window does not pass it over for ever; but it is not a good probe.
    A share of the places is for what has waited for long: a higher priority goes first, but no stream
    of such keeps others waiting without end.
    """
    if gate.view.state in {GateState.OPEN, GateState.HALF_OPEN}:
        unsent = _take(fresh, demand, places, met)
        return unsent or _take(least, demand, places, met, isolated=demand.lone), []
    first: list[Pending] = []
    if demand.lone:
        first += _take(in_turn, demand, min(1, places), met, isolated=True)
    if demand.has_aged:
        share = for_aged(places - len(first), conf.AGED_SHARE)
        first += _take(aged, demand, share, met)
    excluded = [step.id for step in first]
    rest = places - len(first)
    at_once = _at_once(demand, rest, ready)
    if demand.wanted:
        first += _take(in_turn, demand, rest - len(at_once), met, excluded=excluded)
    return first, at_once


def _at_once(demand: Demand, places: int, ready: Sequence[Ready]) -> list[Ready]:
    """Return those of `ready` that are among the next `places` of their line; none that may be held."""
    free = [one for one in ready if one.change.was_held is None and not demand.steps_held]
    if places <= 0 or not free:
        return []
    others = []
    if demand.wanted:
        values = {"agent": demand.agent, "from_turn": demand.mark.turn, "limit": places}
        others = prepared.run(NEXT, values)
    line: list[tuple[int, int, Ready | None]] = [(-high, turn, None) for high, turn in others]
    line += [(-one.change.priority, one.turn or 0, one) for one in free]
    line.sort(key=itemgetter(0, 1))  # of the same turn, what was pending before goes first
    return [one for *_, one in line[:places] if one]


def _take(
    statement: Statement,
    demand: Demand,
    places: int,
    met: Met,
    *,
    isolated: bool = False,
    excluded: Sequence[int] = (),
) -> list[Pending]:
    """Lock up to `places` steps that may go; look past those that are held, and note where."""
    taken: list[Pending] = []
    seen = list(excluded)
    for _ in range(MOST_ROUNDS):
        batch = _lock_pending(statement, demand, places - len(taken), seen, isolated)
        free = [step for step in batch if not step.held]
        taken += free
        seen += [step.id for step in batch]
        if len(free) == len(batch):
            break
        for queue in {isolated, False}:
            met[demand.agent, queue] = len(taken) < places
    return taken


def _lock_pending(
    statement: Statement, demand: Demand, limit: int, excluded: Sequence[int], isolated: bool
) -> list[Pending]:
    """Lock up to `limit` steps that are due, with their tasks; skip what others have locked."""
    if limit <= 0:
        return []
    wanted = {
        "agent": demand.agent,
        "isolated": isolated,
        "excluded": list(excluded),
        "steps_held": demand.steps_held,
        "aged_after": demand.aged_after,
        "from_turn": (AGENTS.head if isolated else demand.mark).turn,
        "pending_from": demand.mark.pending_since,
        "limit": limit,
    }
    found = prepared.run(statement(), wanted)
    rows = (dict(zip(PENDING, row, strict=True)) for row in found)
    return [
        Pending(
            **{
                **row,
                "request": json.loads(row["request"]),
                "loads": json.loads(row["loads"]) if row["loads"] else None,
            }
        )
        for row in rows
    ]
