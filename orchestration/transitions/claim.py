"""Claim steps for agents: pending → processing (P6, P16, P21)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from .. import conf
from ..database import prepared
from ..decisions.fairness import give_turns, positions
from ..decisions.gate import Observation, again_at, observe, room, sent
from ..messaging.messages import Request
from ..payloads.keys import step_key
from ..payloads.placeholders import Loads
from ..states import TaskState
from .backlog import Met, Pending, Places, take
from .change import Ready
from .demand import Demand, demands, in_flight
from .gates import LockedGate, contested, write
from .held_time import HELD_SECONDS, HELD_SECONDS_BY_TASK
from .holds import park
from .loading import UnfilledRequest
from .settle import release_ready
from .step_update import StepUpdate, require


def _dispatch(held_seconds: str) -> StepUpdate:
    """Return the update that dispatches steps; `held_seconds` is for how long holds kept each.

    A step that may have been done is never repeated once the service has forgotten its key. One that has
    a turn here was waiting until now.
    """
    return StepUpdate(
        f"""process_state = 'processing', locked_by = r.by, attempt = s.attempt + 1,
    request = coalesce(r.request, s.request), turn = coalesce(r.turn, s.turn),
    pending_since = CASE s.process_state WHEN 'waiting' THEN n.now ELSE s.pending_since END,
    dispatched_at = n.now, keyed_at = coalesce(keyed_at, n.now),
    complete_by = n.now + r.time_allowed * interval '1 second',
    held_seconds = held_seconds + {held_seconds},
    outcome = '', error_code = '', error_message = ''""",
        returning="""s.id, extract(epoch FROM complete_by)::float8,
    CASE WHEN in_doubt AND keyed_at < (SELECT clock_timestamp())
        + (r.time_allowed - r.memory) * interval '1 second'  -- when the call may arrive
        THEN 'ask' WHEN in_doubt AND probing_outcome THEN 'settle' ELSE 'do' END,
    (extract(epoch FROM dispatched_at) * 1000000)::bigint, in_doubt""",
        by="text",
        request="jsonb",
        turn="bigint",
        time_allowed="float8",
        memory="float8",
    )


# pending or waiting → processing; where there were no holds, the statement is spared the words
DISPATCHED = _dispatch("0")
DISPATCHED_AFTER_HOLD_OF_TASK = _dispatch(HELD_SECONDS_BY_TASK)
DISPATCHED_AFTER_HOLD = _dispatch(HELD_SECONDS)

# Their locks are held. A task that has left this state has cancelled its steps: these are not written.
STARTED = """
UPDATE orchestration_task SET state = 'processing'
WHERE id = ANY(%(ids)s::uuid[]) AND state = 'pending'
"""


@dataclass(kw_only=True)
class Claimed:
    """The requests to send, by agent, and the seconds until a gate lets more through by itself.

    `more` are the agents with places left, as steps ahead were held: others may stand behind these.
    `loads` are the workflow of a request that lacks what is to be loaded, and what that is, by step.
    """

    requests: dict[str, list[Request]] = field(default_factory=dict)
    loads: dict[int, tuple[str, Loads]] = field(default_factory=dict)
    more: set[str] = field(default_factory=set)
    again_in: float | None = None

    @property
    def unfilled(self) -> list[UnfilledRequest]:
        """Return the requests that lack what is to be loaded."""
        return [
            UnfilledRequest(agent=agent, workflow=workflow, request=request, loads=loads)
            for agent, requests in self.requests.items()
            for request in requests
            if request.step in self.loads
            for workflow, loads in [self.loads[request.step]]
        ]

    def add(self, other: "Claimed") -> None:
        """Add what was claimed for other agents."""
        self.requests |= other.requests
        self.loads |= other.loads
        self.more |= other.more
        if other.again_in is not None:
            self.look_again(other.again_in)

    def look_again(self, seconds: float) -> None:
        """Note that there may be more to claim after this number of seconds."""
        self.again_in = min(seconds, self.again_in) if self.again_in is not None else seconds


@transaction.atomic(savepoint=False)
def claim(
    agents: Collection[str],
    by: str,
    observed: Mapping[str, Sequence[Observation]] | None = None,
    ready: Sequence[Ready] = (),
) -> Claimed:
    """Claim what each of `agents` has room for, a batch at most; return the requests.

    `ready` are waiting steps that the same transaction made ready. Those whose turn it is are claimed at
    once, and spared the write that makes them pending; the others become pending.

    An agent whose gate another session keeps locked is left out (`lock_and_read`).

    `by` is the claiming instance (LockedBy); `observed` is what attempts came to, for the gates. The
    requests are to be sent after the commit; any that is lost on the way expires at its complete-by
    time and is tried again.
    """
    claimed = Claimed()
    if not agents:
        release_ready(ready)
        return claimed
    locked = demands(agents, [each.arrival for each in ready])
    for demand, gate in locked:
        _observe((observed or {}).get(demand.agent, ()), gate, demand)
    ready = _in_line(ready, [demand for demand, _ in locked])
    places = _places(locked, ready)
    met: Met = {}
    take(places, met)
    taken: list[tuple[Demand, Pending]] = []
    for agent in places:
        steps = [*agent.pending, *map(_pending, agent.at_once)]
        taken += [(agent.demand, step) for step in steps]
        if steps:
            gate = agent.gate
            gate.view = sent(gate.view, gate.limits, len(steps), agent.demand.now)
        if not agent.demand.stopped:
            _look_again(claimed, agent.gate, agent.demand, len(steps))
    at_once = {waiting.step.id for agent in places for waiting in agent.at_once}
    release_ready([waiting for waiting in ready if waiting.step.id not in at_once])
    written = write([gate for _, gate in locked], _writing(taken, by))
    for demand, step, request in _requests(taken, written):
        claimed.requests.setdefault(demand.agent, []).append(request)
        if step.loads:
            claimed.loads[step.id] = (step.workflow, step.loads)
    claimed.more = _park(met)
    if contested(agents):
        claimed.look_again(conf.LOCKED_GATE_RETRY_S)
    return claimed


def _in_line(ready: Sequence[Ready], demands: Iterable[Demand]) -> list[Ready]:
    """Return the steps with their turns, but for those whose gate is not locked now."""
    standings = positions(line for demand in demands for line in demand.standings or ())
    arrivals = [step.arrival for step in ready if step.arrival.line in standings]
    turns = iter(give_turns(arrivals, standings))
    return [
        step._replace(turn=next(turns)) if step.arrival.line in standings else step
        for step in ready
    ]


def _park(met: Met) -> set[str]:
    """Set held steps that were met aside; return the agents with places left for those behind them."""
    return {
        agent
        for (agent, isolated), is_short in sorted(met.items())
        if park(agent, isolated=isolated) and is_short
    }


def _observe(outcomes: Sequence[Observation], gate: LockedGate, demand: Demand) -> None:
    if outcomes:
        out = in_flight(demand, gate)
        gate.view = observe(gate.view, gate.limits, outcomes, demand.now, out)


def _places(locked: Iterable[tuple[Demand, LockedGate]], ready: Iterable[Ready]) -> list[Places]:
    """Return the places that each gate has for what there is to take them."""
    by_agent: dict[str, list[Ready]] = defaultdict(list)
    for step in ready:
        by_agent[step.step.agent].append(step)
    places = []
    for demand, gate in locked:
        own, count = by_agent[demand.agent], 0
        if not demand.stopped and (demand.has_due or own):
            free = room(gate.view, gate.limits, in_flight(demand, gate), demand.now)
            count = min(free, conf.BATCH_SIZE)
        places.append(Places(demand=demand, gate=gate, count=count, ready=own))
    return places


def _pending(ready: Ready) -> Pending:
    """Return a step that is claimed as soon as it is ready, like one that was pending."""
    change, step = ready.change, ready.step
    return Pending(
        id=step.id,
        task=change.id,
        workflow=change.workflow,
        task_state=change.state,
        name=step.name,
        direction=step.direction,
        action=step.action,
        generation=step.generation,
        attempt=step.attempt,
        request=ready.request,
        loads=step.loads,
        reference=change.reference,
        since=None,
        of_held_task=change.was_held,
        is_held=None,
        turn=ready.turn,
    )


def _writing(taken: Sequence[tuple[Demand, Pending]], by: str) -> list[prepared.Part]:
    """Return the statements that begin tasks and dispatch steps; the last one returns the steps."""
    if not taken:
        return []
    if any(demand.was_held(step.since) for demand, step in taken):
        dispatched = DISPATCHED_AFTER_HOLD
    elif any(step.of_held_task is not None for _, step in taken):
        dispatched = DISPATCHED_AFTER_HOLD_OF_TASK
    else:
        dispatched = DISPATCHED
    started = {step.task for _, step in taken if step.task_state == TaskState.PENDING}
    beginning = prepared.Part(STARTED, {"ids": [str(task) for task in started]})
    dispatching = dispatched.part(
        [step for _, step in taken],
        by=[by] * len(taken),
        request=[None if step.turn is None else step.request for _, step in taken],
        turn=[step.turn for _, step in taken],
        time_allowed=[demand.time_allowed for demand, _ in taken],
        memory=[demand.key_memory for demand, _ in taken],
    )
    return [beginning, dispatching] if started else [dispatching]


def _requests(
    taken: Sequence[tuple[Demand, Pending]], rows: Iterable[Sequence[Any]]
) -> Iterator[tuple[Demand, Pending, Request]]:
    """Return the request of each step, as it was written.

    Raises `ConcurrentUpdate` if any is not what it was when it was taken, or is among them twice.
    """
    written = {step: times for step, *times in rows}
    require(written, taken)
    for demand, step in taken:
        complete_by, mode, dispatch, in_doubt = written[step.id]
        request = Request(
            step=step.id,
            task=step.task,
            name=step.name,
            attempt=step.attempt + 1,
            action=step.action,
            key=step_key(step.task, step.name, step.direction, step.generation),
            reference=step.reference,
            complete_by=complete_by,
            call_timeout=demand.call_timeout,
            tries=demand.tries,
            payload=dict(step.request),
            mode=mode,
            generation=step.generation,
            dispatch=dispatch,
            in_doubt=in_doubt,
        )
        yield demand, step, request


def _look_again(claimed: Claimed, gate: LockedGate, demand: Demand, taken: int) -> None:
    """Note when a gate that keeps steps waiting admits more, if no doorbell would ring for it."""
    at = again_at(gate.view, demand.now)
    if at is None and gate.limits.rate is not None and taken < conf.BATCH_SIZE:
        at = demand.now + 1 / gate.limits.rate
    if at is not None:
        claimed.look_again(max(0.0, at - demand.now))
