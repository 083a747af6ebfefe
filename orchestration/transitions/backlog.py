"""Read an agent's backlog: waiting steps, requests in flight, and the next steps."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

from .. import conf
from ..database import prepared
from ..decisions.fairness import Arrival, for_aged
from ..models.hold import holds_agent
from ..models.low_water import (
    AGENTS,
    AGENTS_FROM,
    WANTED,
    Mark,
    first_in_flight,
    first_in_line,
    longest_waiting,
)
from ..models.step import claimable
from ..payloads.placeholders import Loads
from ..states import GateState, StepState
from .candidates import aged, fresh, in_turn, least
from .change import Ready
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
    f.all_kinds, {WANTED},
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

MOST_ROUNDS = 5  # of looking past held steps, in one turn; the rest has the next


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
    def state(self) -> str:
        """Return the state that it is claimed in."""
        return StepState.PENDING if self.turn is None else StepState.WAITING

    @property
    def held(self) -> bool:
        """Return whether a hold on its task, or on its name, is in force."""
        return bool(self.of_held_task or self.is_held)


# The queues in which held steps were met (agent, isolated), and whether places were left for them.
Met = dict[tuple[str, bool], bool]

Statement = Callable[[], str]

PENDING = tuple(field.name for field in fields(Pending))[:-1]

# The turns of each agent's next steps that may go: along step_turn, from the index alone.
NEXT = f"""
SELECT a.agent, found.priority, found.turn
FROM unnest(%(agents)s::text[], %(from_turn)s::bigint[], %(limits)s::bigint[])
    AS a (agent, from_turn, "limit")
CROSS JOIN LATERAL (SELECT s.priority, s.turn FROM orchestration_step s
    WHERE s.agent = a.agent AND NOT s.isolated AND {claimable("s")} AND s.turn >= a.from_turn
    ORDER BY s.agent, s.isolated, s.priority DESC, s.turn, s.id LIMIT a."limit") AS found
"""  # noqa: S608 - a constant of our own


@dataclass(kw_only=True, slots=True, eq=False)
class Places:
    """An agent's places for steps: of the waiting ones that are `ready` those that take one are `at_once`."""

    demand: Demand
    gate: LockedGate
    count: int
    ready: Sequence[Ready]
    pending: list[Pending] = field(default_factory=list)
    at_once: list[Ready] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Return how many are free."""
        return self.count - len(self.pending) - len(self.at_once)


class Look(NamedTuple):
    """How many steps to look for; among those that go alone, or among the others."""

    places: Places
    limit: int
    isolated: bool = False


def demands(
    agents: Collection[str], arrivals: Iterable[Arrival] = ()
) -> list[tuple[Demand, LockedGate]]:
    """Lock the gates of agents; return what there is to do for those that are locked now.

    Each comes with the standings of its lines that `arrivals` join.
    """
    marks = AGENTS.of(agents)
    values = AGENTS.given(marks) | lines_of(arrivals)
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


def take(agents: Sequence[Places], met: Met) -> None:
    """Fill places with steps that may go, locked; at most one for each agent goes alone.

    Of the ready ones, which no other session sees yet, those get a place whose turn is among the next.

    The one that goes alone is first, so that a full window does not pass it over for ever; but it is not
    a good probe. A share of the places is for what has waited for long: a higher priority goes first,
    but no stream of such keeps others waiting without end.
    """
    probes = [
        places
        for places in agents
        if places.gate.view.state in {GateState.OPEN, GateState.HALF_OPEN}
    ]
    _take(fresh, [Look(places, places.left) for places in probes], met)
    unsent = [places for places in probes if not places.pending]
    _take(
        least,
        [Look(places, places.left, isolated=places.demand.has_isolated) for places in unsent],
        met,
    )
    others = [places for places in agents if places not in probes]
    isolated = [places for places in others if places.demand.has_isolated]
    _take(in_turn, [Look(places, min(1, places.left), isolated=True) for places in isolated], met)
    has_aged = [places for places in others if places.demand.has_aged]
    _take(aged, [Look(places, for_aged(places.left, conf.AGED_SHARE)) for places in has_aged], met)
    _take_at_once(others)
    due = [places for places in others if places.demand.has_due]
    _take(in_turn, [Look(places, places.left) for places in due], met)


def _take_at_once(agents: Iterable[Places]) -> None:
    """Give places to ready steps that are among the next of their line; not to any that may be held."""
    free = {
        places.demand.agent: [ready for ready in places.ready if ready.change.was_held is None]
        for places in agents
        if places.left > 0 and not places.demand.steps_held
    }
    joining = [places for places in agents if free.get(places.demand.agent)]
    lines: dict[str, list[tuple[int, int, Ready | None]]] = defaultdict(list)
    asked = [places for places in joining if places.demand.has_due]
    values = {
        "agents": [places.demand.agent for places in asked],
        "from_turn": [places.demand.mark.turn for places in asked],
        "limits": [places.left for places in asked],
    }
    for agent, priority, turn in prepared.run(NEXT, values) if asked else ():
        lines[agent].append((-priority, turn, None))
    for places in joining:
        line = lines[places.demand.agent]
        line += [
            (-step.change.priority, step.turn or 0, step) for step in free[places.demand.agent]
        ]
        line.sort(key=itemgetter(0, 1))  # of the same turn, what was pending before goes first
        places.at_once += [step for *_, step in line[: places.left] if step]


def _take(statement: Statement, looks: Iterable[Look], met: Met) -> None:
    """Fill places with locked steps; look past those that are held, and note where."""
    looks = [look for look in looks if look.limit > 0]
    seen = [step.id for look in looks for step in look.places.pending]
    for _ in range(MOST_ROUNDS):
        if not looks:
            break
        pending = _lock_pending(statement, looks, seen)
        again = []
        for look in looks:
            agent = look.places.demand.agent
            free = [step for step in pending[agent] if not step.held]
            look.places.pending += free
            seen += [step.id for step in pending[agent]]
            if len(free) < len(pending[agent]):
                left = look.limit - len(free)
                met |= {(agent, queue): left > 0 for queue in (look.isolated, False)}
                again += [look._replace(limit=left)] if left else []
        looks = again


def _lock_pending(
    statement: Statement, looks: Sequence[Look], excluded: Sequence[int]
) -> dict[str, list[Pending]]:
    """Lock steps that are due, with their tasks, by agent; skip what others have locked."""
    demands = [look.places.demand for look in looks]
    parameters = {
        "agents": [demand.agent for demand in demands],
        "isolated": [look.isolated for look in looks],
        "from_turn": [
            (AGENTS.head if look.isolated else look.places.demand.mark).turn for look in looks
        ],
        "pending_from": [demand.mark.pending_since for demand in demands],
        "aged_after": [demand.aged_after for demand in demands],
        "limits": [look.limit for look in looks],
        "excluded": list(excluded),
        "steps_held": any(demand.steps_held for demand in demands),
    }
    pending: dict[str, list[Pending]] = defaultdict(list)
    for agent, *values in prepared.run(statement(), parameters):
        row = dict(zip(PENDING, values, strict=True))
        row["request"] = json.loads(row["request"])
        row["loads"] = json.loads(row["loads"]) if row["loads"] else None
        pending[agent].append(Pending(**row))
    return pending
