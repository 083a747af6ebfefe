"""The simulated world: one clock, a queue of events, messages that get lost, faults to come."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from orchestration.decisions.progress import StepView
from orchestration.states import LOCAL, Direction, Outcome

from .child_shapes import add_children
from .services import Effect, Promise, Service, require
from .shapes import LATEST, Rules, draw, with_notes
from .store import SATISFIED, Row, SimReport, SimTask, Store

FLOWS = 2**40  # between seeds and those of their flows
CHILDREN = 2**41  # and those of their children
AMENDS = 2**42  # and those of the changes of inputs

# What can be left out, to see it go wrong: the attempt's fence; the key that stays; the lock on the
# gate; that doubt is settled before an undo; that a forgotten key is not used; that an agent takes
# each attempt once; that a refusal by itself ends no doubt; that late replies are heard; that what
# another session has locked is passed over; that a hold stops an undo; that a step's own trouble is
# distinguished from its service's; that probes take turns; that the repeat of a lost call ends no doubt;
# that what may have been done is not passed over; that a
# report of an earlier request is not taken for one of this; that what was accepted and is late is in doubt;
# that a step waits for its time; of steps with children, that all are made or none; that a resubmit keeps
# those that are there; that a step waits for all; that an undo reaches those that go on, and before what
# they came after; that those which are not needed are undone; that the end of each is noted; of a change of
# the input, that a step has used no former value; that a request is built again which was not sent.
GUARDS = (
    *("fence", "key", "lock", "settle", "memory", "once", "doubt", "late", "skip", "hold"),
    *("own", "turns", "repeat", "pass", "of", "accepted", "time"),
    *("whole", "kept", "all", "below", "up", "rest", "look", "taken", "rebuilt"),
)


class World:
    """Everything in one run. `broken` names the guards that are left out, to see it go wrong."""

    def __init__(self, seed: int, *, broken: frozenset[str] = frozenset(), trace: bool = False):
        require(broken <= set(GUARDS), f"unknown guards: {broken}")
        self.rng = Random(seed)  # noqa: S311 - it must repeat
        self.of_flows = Random(seed + FLOWS)  # noqa: S311 - the same
        self.broken = broken
        self.now = 0.0
        self.trace: list[str] | None = [] if trace else None
        self.of_children = Random(seed + CHILDREN)  # noqa: S311 - the same
        self.of_amends = Random(seed + AMENDS)  # noqa: S311 - the same
        workflow, self.agents = draw(self.rng, self.of_flows)
        workflow = with_notes(self.of_amends, workflow)
        self.workflow, self.part = add_children(self.of_children, workflow, self.agents)
        self.steps = [*self.workflow.steps, *(self.part.steps if self.part else ())]
        self.children_of: Mapping[int, Sequence[SimTask]] = {}  # by step
        self.store = Store(
            self.agents,
            lambda: self.now,
            settle_first="settle" not in broken,
            in_time="time" not in broken,
            below="below" not in broken,
        )
        self.services = {
            name: Service(
                name=name,
                memory=None if rules.key_memory is None else rules.key_memory + LATEST + 1,
                can_ask=rules.can_ask,
                stores_refusals=rules.stores_refusals,
                witness=self.witness,
                promise=self.promise,
            )
            for name, rules in self.agents.items()
        }
        self.down: dict[str, float] = dict.fromkeys(self.agents, 0.0)
        self.armed: Counter[str] = Counter()
        self.applied: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()  # calls that have not arrived yet, by key
        self.holds: list[tuple[str, str]] = []
        self.poison: dict[tuple[str, str], str] = {}  # what a step of a task does to its agent
        self.locks: dict[tuple[str, str], float] = {}  # rows that others have locked, until when
        # Requests that two workers have taken, by key: what of these is not known. Of two answers to one
        # attempt either may be lost; which one was right cannot be known then.
        self.unheard: dict[str, set[tuple[int, int]]] = defaultdict(set)
        self.unsure: set[str] = set()  # keys of the present attempts that were sent meanwhile
        self.answered: dict[str, float] = dict.fromkeys(self.agents, -1.0)  # sent last of what was
        self.hear_report: Callable[[SimReport], None] = lambda _report: None
        self.posted = 0  # messages that have not come yet
        self.flushed_at = -1.0
        self.healed = False
        self.events = 0
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._before = {step.name: tuple(step.after) for step in self.steps}
        self._after: dict[str, set[str]] = {name: set() for name in self._before}
        for step in self.steps:  # in an order in which each comes after those before it
            reach = set(step.after)
            for other in step.after:
                reach |= {name for name, after in self._after.items() if other in after}
            for name in reach:
                self._after[name].add(step.name)

    def log(self, text: str, *values: Any) -> None:
        """Note what happens, if anybody wants to read it."""
        if self.trace is not None:
            self.trace.append(f"{self.now:8.2f}  " + text.format(*values))

    def after(self, seconds: float, act: Callable[..., None], *values: Any) -> None:
        """Have something happen later."""
        self._count += 1
        heapq.heappush(self._queue, (self.now + seconds, self._count, act, values))

    def step(self) -> None:
        """Let the next event happen."""
        self.now, _, act, values = heapq.heappop(self._queue)
        self.events += 1
        act(*values)

    def chance(self, low: float, high: float) -> float:
        """Draw a number of seconds."""
        return low + (high - low) * self.rng.random()

    def hit(self, fault: str) -> bool:
        """Return whether a fault that is to come happens here and now."""
        if not self.armed[fault]:
            return False
        self.armed[fault] -= 1
        self.applied[fault] += 1
        self.log("FAULT {}", fault)
        return True

    def send(self, kind: str, deliver: Callable[[Any], None], message: Any) -> None:
        """Put a message on a list: it may be lost, doubled or late; any two may change places."""
        if self.hit(f"{kind}_lost"):
            return
        self._post(kind, self.chance(0.01, 0.3), deliver, message)
        if self.hit(f"{kind}_twice"):
            self._post(kind, self.chance(0.01, 3.0), deliver, message)

    def _post(self, kind: str, delay: float, deliver: Callable[[Any], None], message: Any) -> None:
        if self.hit(f"{kind}_late"):
            delay += self.chance(3.0, 14.0)
        elif kind == "reply" and self.hit("reply_very_late"):
            delay += self.chance(15.0, 60.0)
        self.posted += 1
        self.after(delay, self._arrive, self.now, deliver, message)

    def _arrive(self, sent_at: float, deliver: Callable[[Any], None], message: Any) -> None:
        self.posted -= 1
        if sent_at > self.flushed_at:
            deliver(message)

    def held(self, view: StepView) -> bool:
        """Return whether a hold keeps a step."""
        names = (("task", view.task), ("name", view.name), ("agent", view.agent), ("all", ""))
        return any(name in self.holds for name in names)

    def keeps(self, view: StepView) -> bool:
        """Return whether a hold keeps the task of a step from being undone for it."""
        return "hold" not in self.broken and self.held(view)

    def undo_by_itself(self, row: Row) -> bool:
        """Have a task undone because of a step, as its policy asks; return whether that began."""
        require(not self.held(row.view), f"{row.view.task} is held, and is undone")
        refusal = self.store.undo(self.store.tasks[row.view.task])
        self.log("undo for {}: {}", row.key, refusal or "begun")
        return refusal is None

    def locked(self, kind: str, name: str) -> bool:
        """Return whether another session has locked a row, which is then passed over."""
        return self.now < self.locks.get((kind, name), 0.0)

    def stuck(self) -> bool:
        """Return whether a turn would wait for a lock, if it waited for any."""
        return "skip" in self.broken and any(self.now < until for until in self.locks.values())

    def rules(self, agent: str) -> Rules:
        """Return an agent's rules."""
        return self.agents[agent]

    def revertible(self, agent: str) -> bool:
        """Return whether what this agent does can be undone."""
        return agent != LOCAL and self.agents[agent].undo_by in {"key", "result"}

    def known(self, agent: str, task: str, step: str) -> int:
        """Return how many effects of a step stand, but for those that cannot be known, or have an alert."""
        service = self.services[agent]
        if not service.standing[task, step]:
            return 0
        left = (effect.key for effect in service.left(task, step))
        return sum(not self.unheard[key] and (agent, key) not in self.store.alarms for key in left)

    def promise(self, agent: str, promise: Promise) -> bool:
        """Return whether a service accepts a call, and ends it later; have it end then."""
        rng = self.of_flows
        if rng.random() >= self.agents[agent].accepts:
            return False
        self.after(rng.uniform(0.5, 25.0), self._end, agent, promise)
        return True

    def _end(self, agent: str, promise: Promise) -> None:
        """Have something end that was accepted; the report is lost, doubled, late, or contradicted."""
        rng, service = self.of_flows, self.services[agent]
        refused = rng.random() < 0.2
        outcome, result, code = service.end(self.now, promise.key, refused=refused)
        self.log("{} ends {}: {} {}", agent, promise.key, outcome, code)
        if rng.random() < 0.2:
            return
        report = SimReport(
            id=promise.id, of=promise.id, task=promise.task, step=promise.step, outcome=outcome,
            result=result, code=code,
        )  # fmt: skip
        late = rng.uniform(10.0, 40.0) if rng.random() < 0.2 else rng.uniform(0.0, 0.5)
        self._report(late, report)
        if rng.random() < 0.2:
            self._report(late + rng.uniform(0.0, 20.0), report)
        if rng.random() < 0.1:
            other = (
                (Outcome.REJECTED, "declined") if outcome == Outcome.DONE else (outcome, "again")
            )
            contradicting = replace(report, id=f"{report.id}!", outcome=other[0], code=other[1])
            self._report(late + rng.uniform(0.1, 20.0), contradicting)

    def _report(self, delay: float, report: SimReport) -> None:
        self.posted += 1
        self.after(delay, self._hear, report)

    def _hear(self, report: SimReport) -> None:
        self.posted -= 1
        self.hear_report(report)

    def sent(self, key: str) -> None:
        """Note whether an attempt is sent while what an earlier one did is not known."""
        (self.unsure.add if self.unheard[key] else self.unsure.discard)(key)

    def heard(self, key: str, taken: tuple[int, int], outcome: str) -> None:
        """Note that what a worker did with a request is known, if its reply says so."""
        if outcome != Outcome.UNKNOWN:
            self.unheard[key].discard(taken)

    def _in_time(self, effect: Effect, does: Mapping[str, Row]) -> None:
        """Check that a step is not done before its time."""
        flow = does[effect.step].view.flow
        if flow is not None and flow.not_before is not None:
            since = max((does[name].ended_at for name in self._before[effect.step]), default=0.0)
            in_time = self.now >= since + flow.not_before - 1e-6
            require(in_time, f"{effect.step} is done before its time")

    def witness(self, what: str, agent: str, effect: Effect, key: str) -> None:
        """Check an effect that a service is about to have, or to undo, under a key."""
        self.log("{} has its effect: {} {} of {}", agent, what, effect.step, effect.key)
        task = self.store.tasks[effect.task]
        does = self.store.does(task)
        if what == Direction.DO:
            twice = (
                self.known(agent, effect.task, effect.step)
                and effect.key not in self.store.late
                and not self.unheard[effect.key]
            )
            if twice and effect.key in self.unsure:  # the reply came when this attempt was sent
                self.unheard[effect.key].add((0, 0))
                twice = False
            require(not twice, f"{effect.step} of {effect.task} is done twice")
            for name in self._before[effect.step]:
                state = does[name].view.state
                require(state in SATISFIED, f"{effect.step} is done while {name} is {state}")
            self._in_time(effect, does)
            return
        excused = self.unheard[effect.undone_by] or self.unheard[key]
        excused = excused or effect.undone_by in self.store.late  # it has an alert
        excused = excused or effect.undone_by == "a person"  # an undo may come after that
        require(not effect.undone or bool(excused), f"{effect.id} is undone twice")
        require(task.undoing, f"{effect.id} is undone without a request")
        for name in self._after[effect.step]:
            view = does[name].view
            require(
                not (view.locked_by or view.in_doubt),
                f"{effect.step} is undone while {name} may be at work",
            )
            if self.revertible(view.agent):
                standing = self.services[view.agent].left(effect.task, name)
                late = any(
                    earlier.key in self.store.late for earlier in standing
                )  # its undo has no turn
                left = self.known(view.agent, effect.task, name)
                require(late or not left, f"{effect.step} is undone before {name}")
            for child in self.children_of.get(view.id, ()):
                self._after_child(effect, child)

    def _after_child(self, effect: Effect, child: SimTask) -> None:
        """Check of an effect about to be undone that nothing of a child stands that came after it."""
        for row in child.rows.values():
            if self.revertible(row.view.agent) and child.id not in self.store.late_tasks:
                left = self.known(row.view.agent, child.id, row.view.name)
                require(not left, f"{effect.step} is undone before {row.view.name} of {child.id}")
