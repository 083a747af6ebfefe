"""The services behind the agents, and the agents' workers: they take requests from Redis and reply."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from orchestration.agents.actions import Call, Result, action
from orchestration.agents.base import Agent
from orchestration.agents.errors import Rejected, Transient, Unknown
from orchestration.agents.service_ledger import LedgerEntry
from orchestration.decisions import progress
from orchestration.messaging import queues
from orchestration.messaging.messages import Reply, Request

from .choices import Choices

# How a call may end, and how often, while faults strike: 0 is the plainest.
ENDS = {
    "done": 12.0, "rejected": 3.0, "transient": 2.0, "unknown, not done": 1.0, "unknown, done": 2.0,
    "lost, not done": 1.0, "lost, done": 2.0, "late": 2.0, "twice": 1.0, "again elsewhere": 1.0,
    "turned away": 1.0, "again, turned away": 2.0,
}  # fmt: skip
CALM = ("done", "rejected")  # ends without any fault
UNSEEN = {"lost, not done", "lost, done", "late", "again elsewhere"}
AGAIN = {"again elsewhere": "transient", "again, turned away": "turned away"}  # how the repeat ends


@dataclass
class Ledger:
    """What the services did: effects and refusals by key, and how often each attempt was sent."""

    effects: dict[str, Result] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    turned_away: set[str] = field(default_factory=set)  # keys, under which nothing is stored
    references: dict[str, str] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    sent: Counter[tuple[int, int]] = field(default_factory=Counter)
    names: dict[int, str] = field(default_factory=dict)
    payloads: dict[tuple[int, int], Any] = field(default_factory=dict)  # by step and attempt
    taken_back: dict[str, str] = field(default_factory=dict)  # key of an effect → key of its undo


LEDGER = Ledger()


class Service(Agent):
    """An agent whose service does the work of a key once; `ending` is how the next call ends."""

    ending: ClassVar[str] = "done"

    @action
    async def perform_it(self, call: Call) -> Result:
        """Have an effect under the call's key."""
        return self._serve(call)

    @action
    async def take_back(self, call: Call) -> Result:
        """Take the effect of another key back."""
        result = self._serve(call)
        LEDGER.taken_back[call.payload["key"]] = call.key
        return result

    def _serve(self, call: Call) -> Result:
        how, key = Service.ending, call.key
        if how == "transient":  # also with a known key
            raise Transient("busy", "come again later")
        if how == "unknown, not done":
            raise Unknown("timeout", "no answer")
        if how == "turned away":  # before it looks at the key
            LEDGER.turned_away.add(key)
            raise Rejected("refused", "not today")
        if key in LEDGER.effects:
            return LEDGER.effects[key]
        if key in LEDGER.refusals:
            raise Rejected(LEDGER.refusals[key], "as before", stored=True)
        if how == "rejected":
            LEDGER.refusals[key] = "refused"
            raise Rejected("refused", "it will not be done", stored=True)
        LEDGER.effects[key] = {"id": f"effect {len(LEDGER.effects)}"}
        LEDGER.references[key], LEDGER.agents[key] = call.reference, self.name
        if how == "unknown, done":
            raise Unknown("timeout", "no answer")
        return LEDGER.effects[key]

    def ledger(self) -> Iterable[LedgerEntry]:
        """Return what this agent's service did."""
        for key, result in LEDGER.effects.items():
            if LEDGER.agents[key] == self.name:
                kind = "undo" if ":undo:" in key else "do"
                yield LedgerEntry(
                    key=key, reference=LEDGER.references[key], kind=kind, result=result
                )


class Alpha(Service):
    """Its failures end in error; it can be asked."""

    name = "alpha"

    async def ask(self, call: Call) -> Any:
        """Return the result of a key, if it had its effect."""
        if call.key in LEDGER.refusals:
            raise Rejected(LEDGER.refusals[call.key], "as before", stored=True)
        return LEDGER.effects.get(call.key)


class Beta(Service):
    """Its rejections wait to be mended; what fails too often is undone."""

    name = "beta"


class Gamma(Service):
    """Its rejections are undone at once; what fails too often waits for longer. Isolated."""

    name = "gamma"


@dataclass
class Workers:
    """The agents' workers of a run: each takes requests from its inbox in Redis, and replies."""

    choices: Choices
    calm: bool
    often: Mapping[str, float] = field(default_factory=dict)  # other weights of ends
    late: list[bytes] = field(default_factory=list)
    marked: defaultdict[str, set[tuple[int, int, int]]] = field(
        default_factory=lambda: defaultdict(set)
    )
    faults: set[str] = field(default_factory=set)

    def waiting(self, names: Iterable[str]) -> list[str]:
        """Return the agents with requests in their inbox."""
        return queues.waiting(list(names))

    def answer(self, agent: type[Agent], *, well: bool) -> str:
        """Take one request and answer it; with `well`, it is done. Return the outcome."""
        raw = queues.take(agent.name, 1)
        if not raw or raw[0] == queues.LOOK:
            return "nothing"
        request = Request.parse(raw[0])
        LEDGER.sent[request.step, request.attempt] += 1
        LEDGER.payloads[request.step, request.attempt] = request.payload
        LEDGER.names[request.step] = f"{request.reference} {request.name}"
        about = f"{request.reference} {request.name} attempt {request.attempt} ({request.key[-6:]})"
        mark = (request.step, request.attempt, request.dispatch)
        if mark in self.marked[agent.name]:
            return f"a copy of {about} is dropped"
        self.marked[agent.name].add(mark)
        how = "done"
        if not well:
            weights = {**ENDS, **self.often}
            how = self.choices.of({end: weights[end] for end in (CALM if self.calm else ENDS)})
        if how not in CALM:
            self.faults.add(how)
        return f"{about}: {how}: {self._perform(agent, request, how)}"

    def _perform(self, agent: type[Agent], request: Request, how: str) -> str:
        if how == "lost, not done":
            return "no reply"
        anew = how in AGAIN
        if anew:
            # as performers do it: the first process had the effect and died, the next one is refused
            self._call(agent, request, "done")
            request, how = request.altered(in_doubt=True), AGAIN[how]
        reply = self._call(agent, request, "done" if how in UNSEEN | {"twice"} else how)
        if reply is None or how == "lost, done":
            return "no reply"
        if anew:
            answered = Reply.parse(reply)
            reply = answered.altered(outcome=progress.outcome_of_repeat(answered.outcome)).dump()
        if how == "late":
            self.late.append(reply)
            return "its reply waits"
        queues.ring(queues.SCHEDULER, [reply] * (2 if how == "twice" else 1))
        return "a reply"

    def deliver(self) -> None:
        """Deliver the replies that were late."""
        late, self.late = self.late, []
        if late:
            queues.ring(queues.SCHEDULER, late)

    @staticmethod
    def _call(agent: type[Agent], request: Request, how: str) -> bytes | None:
        Service.ending = how
        reply = LOOP.run_until_complete(agent(f"{agent.name}@here").answer(request))
        return reply.dump() if reply else None


LOOP = asyncio.new_event_loop()
