"""Choose the next steps of agents, and lock them."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import Any, NamedTuple

from .. import conf
from ..database import prepared
from ..decisions.fairness import for_aged
from ..models.low_water import AGENTS
from ..models.step import claimable
from ..payloads.placeholders import Loads
from ..states import GateState, StepState
from .candidates import aged, fresh, in_turn, least
from .change import Ready
from .demand import Demand
from .gates import LockedGate

MOST_ROUNDS = 5  # of looking past held steps, in one turn; the rest has the next


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
