"""Schedulers, agents and the supervisor: they act on the pure decisions, and die at any point."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from orchestration import gate
from orchestration.gate import Heard
from orchestration.messages import Mode
from orchestration.progression import Refusal, after_reply, refuse_reply
from orchestration.recovery import KEY_FORGOTTEN, Cancel, Failure, GiveUp, Retry, Undo, decide
from orchestration.states import (
    ANSWERED,
    GateState,
    Health,
    OnRejection,
    Outcome,
    StepState,
)

from .services import Answer, require
from .shapes import CALL_TIMEOUT, LATEST, TIME_ALLOWED
from .store import Row, SimTask
from .world import World


@dataclass(frozen=True, kw_only=True, slots=True)
class SimRequest:
    """What an agent is sent."""

    step: int
    attempt: int
    agent: str
    action: str
    task: str
    name: str
    key: str
    direction: str
    payload: Any
    complete_by: float
    mode: str
    generation: int
    in_doubt: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SimReply:
    """What an agent says."""

    step: int
    attempt: int
    outcome: str
    result: dict[str, Any]
    code: str = ""
    retry_after: float | None = None
    generation: int = 1
    in_doubt: bool | None = None


class Agents:
    """All agents: each request is one attempt, within its complete-by time."""

    def __init__(self, world: World, reply: Callable[[SimReply], None]) -> None:
        self.world, self.reply = world, reply
        self.taken: set[tuple[int, int]] = set()

    def receive(self, request: SimRequest) -> None:
        """Begin an attempt; say nothing, ever, if it is too late."""
        world, attempt = self.world, (request.step, request.attempt)
        if attempt in self.taken and "once" not in world.broken:
            return  # the request came twice: two answers to one attempt could differ
        self.taken.add(attempt)
        if world.now >= request.complete_by or world.hit("agent_crash_before"):
            return
        if request.mode == Mode.ASK and not world.rules(request.agent).can_ask:
            self._answer(request, (Outcome.UNKNOWN, {}, KEY_FORGOTTEN), None)
            return
        delay, heard = world.chance(0.02, 0.8), True
        if world.hit("slow_answer"):
            delay = CALL_TIMEOUT - 0.1
        if world.hit("call_lost"):
            world.after(CALL_TIMEOUT, self._answer, request, (Outcome.UNKNOWN, {}, "timeout"), None)
            return
        if world.hit("call_late"):
            delay, heard = CALL_TIMEOUT + world.chance(0.1, LATEST), False
            world.after(CALL_TIMEOUT, self._answer, request, (Outcome.UNKNOWN, {}, "timeout"), None)
        if world.hit("slow_work"):  # others with the same key are turned away meanwhile
            world.after(CALL_TIMEOUT, self._answer, request, (Outcome.UNKNOWN, {}, "timeout"), None)
            world.under_way[request.key] += 1
            world.after(delay, self._begin_work, request)
            return
        stopped = heard and world.hit("agent_stopped")
        if stopped:  # a process that wakes up past its deadline, in the middle of a call
            delay = request.complete_by - world.now + world.chance(0.1, 5.0)
        world.under_way[request.key] += 1
        world.after(delay, self._arrive, request, heard, stopped)

    def _begin_work(self, request: SimRequest) -> None:
        """Have a service work on a call for longer than its agent waits."""
        service = self.world.services[request.agent]
        if request.key in service.at_work or request.mode != Mode.DO:
            self._end_work(request)
            return
        service.at_work.add(request.key)
        self.world.after(self.world.chance(CALL_TIMEOUT, LATEST - 1), self._end_work, request)

    def _end_work(self, request: SimRequest) -> None:
        self.world.services[request.agent].at_work.discard(request.key)
        self.world.under_way[request.key] -= 1
        self._serve(request)

    def _arrive(self, request: SimRequest, heard: bool, stopped: bool) -> None:
        world = self.world
        world.under_way[request.key] -= 1
        retry_after = None
        if world.now < world.down[request.agent]:
            # an outage: nothing was done, and it is seen to be so or not
            said = (Outcome.TRANSIENT, Outcome.UNKNOWN)[world.rng.random() < 0.5]
            answer = (said, {}, "outage")
        elif world.hit("unavailable"):
            answer = (Outcome.TRANSIENT, {}, "unavailable")
        elif world.hit("leave_alone"):
            answer, retry_after = (Outcome.TRANSIENT, {}, "busy"), world.chance(0.0, 9.0)
        else:
            answer = self._serve(request)
            if world.hit("answer_lost"):
                answer = (Outcome.UNKNOWN, {}, "connection_lost")
        if not heard or world.hit("agent_crash_after"):
            return
        if stopped and world.rng.random() < 0.5:  # else an agent that is too late says nothing
            return
        self._answer(request, answer, retry_after)

    def _serve(self, request: SimRequest) -> Answer:
        service = self.world.services[request.agent]
        if request.mode != Mode.DO and service.can_ask:
            return service.ask(request.key, close=request.mode == Mode.ASK)
        service.refuse_next += self.world.hit("refused")
        return service.call(
            self.world.now, request.key, request.direction, request.task, request.name,
            request.payload,
        )  # fmt: skip

    def _answer(self, request: SimRequest, answer: Answer, retry: float | None) -> None:
        outcome, result, code = answer
        in_doubt: bool | None = None
        if outcome == Outcome.REJECTED:
            (outcome, result, code), in_doubt = self._refused(request, answer)
        if "doubt" in self.world.broken and (outcome == Outcome.REJECTED or code == "busy"):
            outcome, in_doubt = Outcome.REJECTED, False
        reply = SimReply(
            step=request.step, attempt=request.attempt, outcome=outcome, result=result, code=code,
            retry_after=retry, generation=request.generation, in_doubt=in_doubt,
        )  # fmt: skip
        self.world.send("reply", self.reply, reply)

    def _refused(self, request: SimRequest, answer: Answer) -> tuple[Answer, bool | None]:
        """Return what is replied to a refusal, and whether that leaves the key in doubt."""
        rules = self.world.rules(request.agent)
        if rules.stores_refusals or (request.mode != Mode.DO and rules.can_ask):
            return answer, False
        if request.in_doubt and rules.can_ask:
            known = self.world.services[request.agent].ask(request.key, close=False)
            if known[0] == Outcome.DONE:
                return known, None
        return answer, request.in_doubt or None


class Schedulers:
    """Any number of schedulers: a turn records what came in and claims what may go."""

    def __init__(self, world: World) -> None:
        self.world, self.store = world, world.store
        self.agents = Agents(world, self.hear)
        self.inbox: list[SimReply] = []
        self.stopped_until = 0.0
        self._rung = False

    def hear(self, reply: SimReply) -> None:
        """Put a reply on the schedulers' inbox."""
        self.inbox.append(reply)
        self.ring()

    def ring(self) -> None:
        """Call a scheduler, unless one is on its way."""
        if not self._rung:
            self._rung = True
            self.world.after(self.world.chance(0.01, 0.1), self.turn)

    def turn(self) -> None:
        """Record all replies, then claim for all agents."""
        self._rung = False
        if self.world.now < self.stopped_until:
            return  # the supervisor rings again
        replies, self.inbox = self.inbox, []
        if replies and self.world.hit("record_crash"):
            return
        for reply in replies:
            self.record(reply)
        for agent in self.world.agents:
            if "lock" in self.world.broken:  # two look, before either of them takes
                for _ in range(2):
                    places = self._places(agent)
                    self.world.after(self.world.chance(0.0, 0.1), self._take, agent, places)
            else:
                self._take(agent, self._places(agent))

    def record(self, reply: SimReply) -> None:
        """Record one reply, or refuse it."""
        world, store = self.world, self.store
        row = store.rows[reply.step]
        task = store.tasks[row.view.task]
        refusal = refuse_reply(row.view, reply.attempt, reply.generation)
        if refusal is Refusal.OTHER_ATTEMPT and "fence" in world.broken:
            refusal = None
        world.log("reply to {} #{}: {} {} {}", row.key, reply.attempt, reply.outcome, reply.code,
                  f"refused: {refusal.value}" if refusal else "")  # fmt: skip
        if refusal:
            if "late" not in world.broken:
                store.hear_late(row, reply.outcome, reply.result, reply.generation, reply.in_doubt)
            return
        row.code = reply.code
        view = after_reply(
            row.view, reply.outcome, reply.result, undoing=task.undoing, in_doubt=reply.in_doubt
        )
        row.complete_by = world.now
        store.accept(row, view, reply.attempt)
        row.retry_after = reply.retry_after or 0.0
        own = view.own_trouble and view.state == StepState.PROCESSING
        if reply.code != KEY_FORGOTTEN and not own:
            health = Health.GOOD if reply.outcome in ANSWERED else Health.BAD
            heard = Heard(health=health, sent_at=row.sent_at, retry_after=reply.retry_after)
            self._tell_gate(view.agent, heard)
        undo = world.rules(view.agent).on_rejection == OnRejection.UNDO
        if view.state == StepState.ERROR and undo and not task.undoing and not store.undo(task):
            return
        store.finish(task)

    def _tell_gate(self, agent: str, heard: Heard) -> None:
        limits = self.world.rules(agent).limits
        before = self.store.gates[agent]
        in_flight = len(self.store.in_flight(agent))
        after = gate.hear(before, limits, [heard], self.world.now, in_flight)
        self.store.gates[agent] = after
        if before.state != after.state:
            self.world.log("gate of {}: {} → {}", agent, before.state, after.state)

    def _places(self, agent: str) -> int:
        limits = self.world.rules(agent).limits
        door = self.store.gates[agent]
        return gate.room(door, limits, self.store.since_opened(agent), self.world.now)

    def _take(self, agent: str, places: int) -> None:
        """Claim up to so many steps, and send their requests unless it dies before that."""
        if not places:
            return
        found: list[Row] = []
        alone = any(row.alone for row in self.store.in_flight(agent))
        rows = list(self.store.rows.values())
        if self.store.gates[agent].state in {GateState.OPEN, GateState.HALF_OPEN}:
            rows.sort(key=lambda row: (row.alone, row.view.own_trouble, row.view.attempt))
        for row in rows:
            if len(found) < places and self._claimable(row, agent) and not (alone and row.alone):
                found.append(row)
                alone = alone or row.alone
        requests = [self._claim(row) for row in found]
        old, limits = self.store.gates[agent], self.world.rules(agent).limits
        self.store.gates[agent] = gate.sent(old, limits, len(found), self.world.now)
        if found:
            in_flight = self.store.in_flight(agent)
            require(len(in_flight) <= limits.window, f"{agent}: {len(in_flight)} in flight")
        if requests and self.world.hit("claim_crash"):
            return
        for request in requests:
            self.world.send("request", self.agents.receive, request)

    def _claimable(self, row: Row, agent: str) -> bool:
        view = row.view
        if view.state != StepState.PENDING or view.agent != agent or row.run_after is not None:
            return False
        names = {("task", view.task), ("name", view.name), ("agent", agent), ("all", "")}
        return names.isdisjoint(self.world.holds)

    def _claim(self, row: Row) -> SimRequest:
        world, view = self.world, row.view
        row.keyed_at = world.now if row.keyed_at is None else row.keyed_at
        row.complete_by = world.now + TIME_ALLOWED
        row.sent_at = world.now
        memory = world.rules(view.agent).key_memory
        # a call may arrive until complete-by: the key must be known by then
        forgotten = (
            memory is not None
            and "memory" not in world.broken
            and row.complete_by > row.keyed_at + memory
        )
        mode = Mode.SETTLE if row.settling else Mode.DO
        if forgotten and view.in_doubt:
            mode = Mode.ASK
        view = replace(
            view, state=StepState.PROCESSING, attempt=view.attempt + 1, locked_by="scheduler",
            outcome="",
        )  # fmt: skip
        self.store.write(row, view)
        self.store.settle_claimed(view.task)
        key = f"{row.key}:{view.attempt}" if "key" in world.broken else row.key
        world.log("claim {} #{} to {}", key, view.attempt, mode)
        return SimRequest(
            step=view.id, attempt=view.attempt, agent=view.agent, action=row.action,
            task=view.task, name=view.name, key=key, direction=view.direction,
            payload=view.request, complete_by=row.complete_by, mode=mode,
            generation=view.generation, in_doubt=view.in_doubt,
        )  # fmt: skip


class Supervisor:
    """Sweeps the store every second: counts, retries, gives up, has tasks undone, wakes, rings."""

    def __init__(self, world: World, schedulers: Schedulers) -> None:
        self.world, self.store, self.schedulers = world, world.store, schedulers
        self.stopped_until = 0.0

    def sweep(self) -> None:
        """Look at everything once; a crash leaves the rest to the next sweep."""
        world = self.world
        world.after(1.0, self.sweep)
        if world.now < self.stopped_until:
            return
        due = []
        for row in self.store.rows.values():
            if row.complete_by is not None and row.complete_by <= world.now:
                due.append(row)
            elif row.run_after is not None and row.run_after <= world.now:
                row.run_after = None
        for row in due:
            if world.hit("sweep_crash"):
                return
            if row.complete_by is not None:  # else an undo of its task came in between
                self._recover(row)
        pending = (StepState.PENDING,)
        if self.schedulers.inbox or any(
            row.view.state in pending and row.run_after is None for row in self.store.rows.values()
        ):
            self.schedulers.ring()

    def _recover(self, row: Row) -> None:
        world, store = self.world, self.store
        task = store.tasks[row.view.task]
        if row.view.locked_by is not None:
            row.code = "expired"
            view = replace(row.view, outcome=Outcome.EXPIRED, in_doubt=True, locked_by=None)
            store.accept(row, view, view.attempt)
            row.retry_after = 0.0
            if not view.own_trouble:
                silence = Heard(health=Health.BAD, sent_at=row.sent_at)
                self.schedulers._tell_gate(view.agent, silence)
        view = row.view
        rules, door = world.rules(view.agent), store.gates[view.agent]
        own = view.own_trouble or gate.answered_since(door, row.failed_at)
        row.view = view = replace(view, own_trouble=own)
        row.failed_at = world.now
        excused = not own and (gate.excuses(door) or row.retry_after > 0)
        failure = Failure(
            failure_count=row.failure_count, rounds=row.rounds, outcome=view.outcome,
            code=row.code, direction=view.direction, undoing=task.undoing,
            in_doubt=view.in_doubt, excused=excused, put_off=row.retry_after,
        )  # fmt: skip
        decision = decide(rules.thresholds, failure, world.rng.random())
        world.log("{} #{} {} {}: {}", row.key, view.attempt, view.outcome, row.code, decision)
        self._apply(decision, row, task)
        store.finish(task)

    def _apply(self, decision: Retry | GiveUp | Undo | Cancel, row: Row, task: SimTask) -> None:
        match decision:
            case Retry():
                row.failure_count, row.rounds = decision.failure_count, decision.rounds
                row.alone = decision.alone
                self.store.pend(row, new_key=decision.new_key)
                row.run_after = self.world.now + decision.wait
            case Cancel():
                self.store.cancel(row)
            case GiveUp():
                row.failure_count = decision.failure_count
                self.store.error(row, row.code or row.view.outcome)
            case Undo():
                row.failure_count = decision.failure_count
                if self.store.undo(task):
                    self.store.error(row, row.code or row.view.outcome)
