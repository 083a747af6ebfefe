"""Agents: each request is one attempt, at a service that fails, or of a step that is poison."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from orchestration.decisions.progress import outcome_of_repeat
from orchestration.decisions.recovery import KEY_FORGOTTEN
from orchestration.messaging.messages import Mode
from orchestration.states import Health, Outcome

from .services import Answer
from .shapes import BLOCKED, CALL_TIMEOUT, LATEST
from .world import World

AGENT_ERRORS = {
    "agent_error",
    KEY_FORGOTTEN,
}  # errors of the agent: they do not count against the service's health
TURNED_AWAY = 0.5  # share of the calls made anew: there are more than the service expects


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
    worker: int = 0
    taken: int = 1  # by which of two workers, where it is taken twice
    performer: int = 0  # which process of an isolated agent performs it
    repeated: bool = False  # its first process died or was blocked

    @property
    def attempt_taken(self) -> tuple[int, int, int]:
        """What is performed once at a time."""
        return self.step, self.attempt, self.taken


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
    key: str = ""
    taken: int = 1
    health: str = ""


class Agents:
    """All agents: each request is one attempt, within its complete-by time; each has one worker.

    The worker of an isolated agent has the requests performed in another process. If that dies or is
    blocked, all but the request that did it are performed anew, within their attempts.
    """

    def __init__(self, world: World, reply: Callable[[SimReply], None]) -> None:
        self.world, self.reply = world, reply
        self.taken: set[tuple[int, int]] = set()
        self.deaths: Counter[str] = Counter()  # of an agent's worker
        self.blocked: dict[str, float] = dict.fromkeys(world.agents, 0.0)  # until when it is
        self.performers: Counter[str] = Counter()  # of an isolated agent, those that were lost
        self.at_work: dict[str, dict[tuple[int, int, int], SimRequest]] = {
            agent: {} for agent in world.agents
        }  # what the process of an isolated agent has

    def receive(self, request: SimRequest) -> None:
        """Take a request, unless it was taken before."""
        world, attempt = self.world, (request.step, request.attempt)
        if attempt in self.taken and "once" not in world.broken:
            return  # the request came twice: two answers to one attempt could differ
        self.taken.add(attempt)
        if world.hit("taken_twice"):  # the mark was lost: another worker has it too
            world.after(world.chance(0.0, 4.0), self._begin, replace(request, taken=2))
            world.unheard[request.key] |= {(request.attempt, 1), (request.attempt, 2)}
        self._begin(request)

    def worker(self, agent: str) -> tuple[int, float]:
        """Return what changes when an agent's worker dies or is blocked."""
        return self.deaths[agent], self.blocked[agent]

    def forget(self) -> None:
        """Lose the marks of what was taken."""
        self.taken.clear()

    def _begin(self, request: SimRequest) -> None:
        """Begin an attempt; say nothing, ever, if it is too late."""
        world, agent = self.world, request.agent
        if world.now < self.blocked[agent]:
            world.after(self.blocked[agent] - world.now, self._begin, request)
            return
        request = replace(request, worker=self.deaths[agent], performer=self.performers[agent])
        if world.now >= request.complete_by or world.hit("agent_crash_before"):
            return
        if request.mode == Mode.ASK and not world.rules(agent).can_ask:
            self._answer(request, (Outcome.UNKNOWN, {}, KEY_FORGOTTEN), None)
            return
        if world.rules(agent).isolated:
            self.at_work[agent][request.attempt_taken] = request
        if poison := world.poison.get((request.task, request.name)):
            self._swallow(request, poison)
            return
        if world.rules(agent).isolated and self._troubles(request):
            return
        self._call(request)

    def _troubles(self, request: SimRequest) -> bool:
        """Return whether a request takes along the process that performs others too, this once."""
        if len(self.at_work[request.agent]) == 1:
            return False
        for how in ("kills", "blocks"):
            if self.world.hit("performer_killed" if how == "kills" else "performer_blocked"):
                self._lose_performer(request, how)
                return True
        return False

    def _lose_performer(self, guilty: SimRequest, how: str) -> None:
        """Have an isolated agent's process die or be blocked: its other requests are performed anew."""
        world, agent = self.world, guilty.agent
        lost, self.at_work[agent] = self.at_work[agent], {}
        del lost[guilty.attempt_taken]
        self.performers[agent] += 1
        for request in lost.values():
            world.log("performed anew: {} #{}", request.key, request.attempt)
            anew = replace(request, in_doubt=True, repeated=True)
            world.after(world.chance(0.01, 0.2), self._begin, anew)
        wait = 0.0 if how == "kills" else max(0.0, guilty.complete_by - world.now - 0.1)
        guilty = replace(guilty, performer=self.performers[agent])
        world.after(wait, self._answer, guilty, (Outcome.UNKNOWN, {}, "agent_error"), None)

    def _swallow(self, request: SimRequest, poison: str) -> None:
        """Handle a request that goes wrong each time, and may take its worker along."""
        world, agent = self.world, request.agent
        world.log("poison: {} {}", request.key, poison)
        match poison:
            case "refused":
                world.after(0.1, self._answer, request, (Outcome.TRANSIENT, {}, "http_403"), None)
            case "raises":
                self._answer(request, (Outcome.UNKNOWN, {}, "agent_error"), None)
            case "kills" | "blocks" if world.rules(agent).isolated:
                self._lose_performer(request, poison)
            case "kills":
                self.deaths[agent] += 1
            case "blocks":
                self.blocked[agent] = world.now + BLOCKED

    def _call(self, request: SimRequest) -> None:
        world = self.world
        delay, heard = world.chance(0.02, 0.8), True
        if world.hit("slow_answer"):
            delay = CALL_TIMEOUT - 0.1
        if world.hit("call_lost"):
            world.after(CALL_TIMEOUT, self._answer, request, (Outcome.UNKNOWN, {}, "timeout"), None)
            return
        if world.hit("call_late"):
            delay, heard = CALL_TIMEOUT + world.chance(0.1, LATEST), False
            world.after(CALL_TIMEOUT, self._answer, request, (Outcome.UNKNOWN, {}, "timeout"), None)
        if heard and world.hit("slow_work"):  # others with the same key are turned away meanwhile
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
        fails = world.rules(request.agent).failing
        if world.now < world.down[request.agent]:
            # an outage: nothing was done, and it is seen to be so or not
            outcome = (Outcome.TRANSIENT, Outcome.UNKNOWN)[world.rng.random() < 0.5]
            answer = (outcome, {}, "outage")
        elif world.hit("unavailable"):
            answer = (Outcome.TRANSIENT, {}, "unavailable")
        elif request.repeated and world.rng.random() < TURNED_AWAY:
            answer = (Outcome.TRANSIENT, {}, "too_many")
        elif world.hit("leave_alone"):
            answer, retry_after = (Outcome.TRANSIENT, {}, "busy"), world.chance(0.0, 9.0)
        elif fails and world.rng.random() < fails:
            self._fail(request, heard)
            return
        else:
            answer = self._serve(request)
            if world.hit("answer_lost"):
                answer = (Outcome.UNKNOWN, {}, "connection_lost")
        if not heard or world.hit("agent_crash_after"):
            return
        if stopped and world.rng.random() < 0.5:  # else an agent that is too late says nothing
            return
        self._answer(request, answer, retry_after)

    def _fail(self, request: SimRequest, heard: bool) -> None:
        """Have a call fail as those of a service in trouble do, a third each."""
        world, how = self.world, self.world.rng.choice(("http_500", "connection_lost", "timeout"))
        if how == "http_500" or world.rng.random() < 0.5:
            self._serve(request)
        if heard:
            wait = CALL_TIMEOUT if how == "timeout" else 0.0
            world.after(wait, self._answer, request, (Outcome.UNKNOWN, {}, how), None)

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
        gone = request.worker != self.deaths[request.agent]
        if gone or self.world.now < self.blocked[request.agent]:
            return  # its worker died with it, or cannot say it in time
        if request.performer != self.performers[request.agent]:
            return  # the process that made this call was given up
        self.at_work[request.agent].pop(request.attempt_taken, None)
        if request.repeated and "repeat" not in self.world.broken:
            outcome = outcome_of_repeat(outcome)
        if outcome == Outcome.REJECTED:
            (outcome, result, code), in_doubt = self._refused(request, answer)
        if "doubt" in self.world.broken and (outcome == Outcome.REJECTED or code == "busy"):
            outcome, in_doubt = Outcome.REJECTED, False
        reply = SimReply(
            step=request.step, attempt=request.attempt, outcome=outcome, result=result, code=code,
            retry_after=retry, generation=request.generation, in_doubt=in_doubt, key=request.key,
            taken=request.taken, health=Health.NOTHING if code in AGENT_ERRORS else "",
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
