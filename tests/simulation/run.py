"""One run: a seed, some tasks, twenty and more faults, healing, quiet; invariants all along."""

from collections.abc import Mapping
from typing import Any

from orchestration.decisions.joining import concern
from orchestration.decisions.progress import StepView
from orchestration.states import (
    LOCAL,
    Direction,
    GateState,
    Outcome,
    PastThreshold,
    StepState,
    TaskState,
)

from .actors import Schedulers, Supervisor
from .amends import TIMES, Amends, check
from .child_shapes import STRIKES, items_of
from .people import Operators
from .services import Broken, require
from .shapes import FAULTS, POISON
from .store import MOVING, SATISFIED, Row, SimTask
from .world import World

TROUBLE = 45.0  # seconds in which the faults strike
MOST_EVENTS = 20_000
REST = 400.0  # seconds after the healing by which all has ended ...
AMID_POISON = 900.0  # ... and where some steps are poison, which have their chances one by one
MOST_IDLE = 10  # seconds that a step may wait for nothing
REFUSALS = 8  # more, where workflows say what follows them
LEAST_FAULTS = 28  # drawn; most of them strike


class Run:
    """A seeded run; `go` raises `Broken` where an invariant does not hold."""

    def __init__(
        self, seed: int, *, broken: frozenset[str] = frozenset(), trace: bool = False
    ) -> None:
        self.world = world = World(seed, broken=broken, trace=trace)
        self.schedulers = Schedulers(world)
        self.supervisor = Supervisor(world, self.schedulers)
        self.operators = Operators(world, self.schedulers.children)
        rng = world.rng
        for number in range(rng.randint(2, 5)):
            world.after(world.chance(0.0, 30.0), self._submit, f"t{number}")
        self.faults = [rng.choice(FAULTS) for _ in range(LEAST_FAULTS + rng.randrange(8))]
        for fault in self.faults:
            world.after(world.chance(0.0, TROUBLE), self._strike, fault)
        if any(step.refused for step in world.workflow.steps):
            for _ in range(REFUSALS):
                world.after(world.of_flows.uniform(0.0, TROUBLE), self._strike, "refused")
        self.amends = Amends(world)
        for _ in range(TIMES):
            world.after(world.of_amends.uniform(0.0, TROUBLE), self._strike, "amend")
        if world.part:
            for fault, times in STRIKES.items():
                for _ in range(times):
                    world.after(world.of_children.uniform(0.0, TROUBLE), self._strike, fault)
        world.after(0.5, self.supervisor.sweep)
        world.after(1.0, self._look)
        world.after(TROUBLE + 5.0, self._heal)
        self.mended = rng.random() < 0.8  # otherwise, errors stay

    def go(self) -> World:
        """Run until nothing moves any more."""
        world = self.world
        try:
            while not self._quiet():
                world.step()
                self.check()
                require(world.events < MOST_EVENTS, "it never comes to rest")
                latest = TROUBLE + (AMID_POISON if world.poison else REST)
                require(world.now < latest, "it does not come to rest in time")
            for task in world.store.tasks.values():
                self._judge(task)
        except Broken as error:
            raise Broken(f"{error} (at {world.now:.2f} s, event {world.events})") from None
        return world

    def _quiet(self) -> bool:
        world = self.world
        if not world.healed or world.posted or self._moving() or self.schedulers.inbox:
            return False
        if self.schedulers.children.looks:
            return False
        for_people = self._in_error() or bool(world.store.alarms)
        if any(service.pending for service in world.services.values()):
            return False
        return not any(world.under_way.values()) and not (self.mended and for_people)

    def _moving(self) -> bool:
        """Return whether any step moves by itself, except poison steps that wait for their service.

        A service that only receives poison cannot be distinguished from one that is down.
        """
        world = self.world
        moving = [
            row
            for row in world.store.rows.values()
            if row.view.state in MOVING
            or (row.view.state == StepState.AWAITING and row.view.agent)  # others for children
            or row.begins_at is not None
        ]
        poison = [row for row in moving if self._excused_poison(row)]
        return len(poison) < len(moving)

    def _excused_poison(self, row: Row) -> bool:
        view = row.view
        if row.begins_at is not None:
            return False  # it was not sent yet
        kind = self.world.poison.get((view.task, view.name), "raises")
        return kind != "raises" and row.own_failures == 0

    def _in_error(self) -> bool:
        return any(task.state == TaskState.ERROR for task in self.world.store.tasks.values())

    def _submit(self, task: str) -> None:
        self.world.log("submit {}", task)
        rng = self.world.rng
        steps = [step for step in self.world.workflow.steps if step.agent]
        items = {"parts": items_of(self.world.of_children, task)} if self.world.part else {}
        self.world.store.submit(task, self.world.workflow, **items)
        if steps and rng.random() < 0.3:
            step, kind = rng.choice(steps).name, rng.choice(POISON)
            self.world.poison[task, step] = kind
            self.world.log("{} of {} is poison: {}", step, task, kind)
        self.schedulers.ring()

    def _strike(self, fault: str) -> None:
        world = self.world
        now, people = world.now, self.operators
        acts = {
            "redis_flushed": lambda: setattr(world, "flushed_at", now),
            "schedulers_stopped": lambda: setattr(self.schedulers, "stopped_until", now + 12.0),
            "supervisor_stopped": lambda: setattr(self.supervisor, "stopped_until", now + 12.0),
            "outage": lambda: self._outage(world.chance(3.0, 8.0)),
            "long_outage": lambda: self._outage(world.chance(15.0, 40.0)),
            "undo": lambda: people.undo(forced=False),
            "force_undo": lambda: people.undo(forced=True),
            "resubmit": lambda: people.mend(by_hand=False),
            "by_hand": lambda: people.mend(by_hand=True),
            "hold": people.hold,
            "amend": self.amends.amend,
            "undo_child": people.undo_child,
            "resubmit_parent": people.resubmit_parent,
            "lock_task": lambda: self._lock("task", list(world.store.tasks)),
            "lock_gate": lambda: self._lock("gate", list(world.agents)),
            "lock_incident": lambda: self._lock("incident", [s.name for s in world.workflow.steps]),
        }
        if fault in acts:
            world.log("FAULT {}", fault)
            world.applied[fault] += 1
            acts[fault]()
            if fault == "redis_flushed":
                self.schedulers.inbox.clear()
                self.schedulers.agents.forget()
        else:
            world.armed[fault] += 1

    def _lock(self, kind: str, names: list[str]) -> None:
        world = self.world
        row = (kind, world.rng.choice(names or [""]))
        world.locks[row] = max(world.locks.get(row, 0.0), world.now + world.chance(2.0, 30.0))
        world.log("another session locks {} until {:.1f}", row, world.locks[row])

    def _outage(self, seconds: float) -> None:
        agent = self.world.rng.choice(list(self.world.agents))
        self.world.down[agent] = self.world.now + seconds

    def _heal(self) -> None:
        world = self.world
        world.log("everything heals")
        world.healed = True
        world.armed.clear()
        world.holds.clear()
        world.locks.clear()
        world.down = dict.fromkeys(world.agents, 0.0)
        for service in world.services.values():
            service.refuse_next = 0
        self.schedulers.stopped_until = self.supervisor.stopped_until = 0.0
        if self.mended:
            self._mend()

    def _mend(self) -> None:
        self.operators.mend_all()
        self.schedulers.ring()
        self.world.after(5.0, self._mend)

    def _look(self) -> None:
        """Check that no step waits without a cause, even while rows are locked."""
        world = self.world
        world.after(1.0, self._look)
        if world.now < max(self.schedulers.stopped_until, self.supervisor.stopped_until):
            return
        for row in world.store.due(LOCAL):
            row.idle = row.idle + 1 if self.schedulers.claimable(row) else 0
            require(row.idle < MOST_IDLE, f"step {row.view.id} {row.view.name} is not computed")
        for agent in world.agents:
            if not (due := world.store.due(agent)):
                continue
            places = 0 if world.locked("gate", agent) else self.schedulers.places(agent)
            isolated = any(row.isolated for row in world.store.in_flight(agent))
            for row in due:
                free = places and not (isolated and row.isolated) and self.schedulers.claimable(row)
                row.idle = row.idle + 1 if free else 0
                require(
                    row.idle < MOST_IDLE, f"step {row.view.id} {row.view.name} waits for nothing"
                )

    def check(self) -> None:
        """Check what holds after every event."""
        world = self.world
        for agent, gate in world.store.gates.items():
            if gate.state == GateState.HALF_OPEN:
                require(world.store.since_opened(agent) <= 1, f"{agent}: two probes at once")
        for task in world.store.touched:
            self._check_task(world.store.tasks[task])
            check(world.store.tasks[task])
        world.store.touched.clear()

    def _check_task(self, task: SimTask) -> None:
        for row in task.rows.values():
            view, at_work = row.view, row.view.state == StepState.PROCESSING
            if view.agent == LOCAL:
                never = (
                    at_work
                    or view.in_doubt
                    or not (concern(view) or view.direction == Direction.DO)
                )
                require(not never, f"step {view.id} {view.name} is computed, and seen at it")
                continue
            thresholds = self.world.agents[view.agent].thresholds
            backward = task.undoing or view.direction == Direction.UNDO
            most = thresholds.undo_threshold if backward else thresholds.failure_threshold
            waits = thresholds.past_threshold == PastThreshold.WAIT
            forward = thresholds.failure_threshold * (1 + thresholds.max_extended_waits * waits)
            chances = most if view.direction == Direction.UNDO else forward + most * backward
            named = f"step {view.id} {view.name}"
            require(
                row.own_failures < chances or view.state not in MOVING,
                f"{named}: {row.own_failures} failures of its own, and goes on",
            )
            require((row.complete_by is not None) == at_work, f"{named}: a stray deadline")
            require(view.state != StepState.ERROR or bool(row.code), f"{named}: a nameless error")
            require(
                view.state != StepState.PROCESSED or view.result is not None, f"{named}: no result"
            )
            require(
                row.failure_count < most or view.state not in MOVING,
                f"{named}: {row.failure_count} failures, and goes on",
            )
        does = self.world.store.does(task)
        for row in does.values():
            if row.view.state in {StepState.PROCESSED, StepState.PROCESSING}:
                for name in row.view.after:
                    require(
                        does[name].view.state in SATISFIED, f"{row.view.name} goes before {name}"
                    )

    def _judge(self, task: SimTask) -> None:
        """Check how a task has ended."""
        world, ends = self.world, (TaskState.PROCESSED, TaskState.UNDONE, TaskState.ERROR)
        if any(
            row.view.state in MOVING and self._excused_poison(row) for row in task.rows.values()
        ):
            return
        children = self.schedulers.children
        children.judge(task)
        left = task.state in ends or children.awaited(task)
        require(left, f"{task.id} is left {task.state}")
        does = world.store.does(task)
        for name, row in does.items():
            if task.state == TaskState.PROCESSED:
                require(row.view.state in SATISFIED, f"{task.id}: {name} is {row.view.state}")
                self._judge_skipped(task, row)
            if row.view.agent == LOCAL:
                continue
            standing = world.known(row.view.agent, task.id, name)
            if task.state == TaskState.PROCESSED:
                all_known = standing == world.services[row.view.agent].standing[task.id, name]
                times = 0 if row.view.state == StepState.SKIPPED else 1
                require(
                    standing == times or not all_known,
                    f"{task.id} is processed, and {name} was done {standing} times",
                )
            elif task.state == TaskState.UNDONE and world.revertible(row.view.agent):
                require(not standing, f"{task.id} is undone, and {name} stands")
        if task.state == TaskState.ERROR:
            errors = [row for row in task.rows.values() if row.view.state == StepState.ERROR]
            require(bool(errors), f"{task.id} is in error, and nothing of it is")

    def _judge_skipped(self, task: SimTask, row: Row) -> None:
        """Check that a step was left out exactly where its condition did not hold."""
        view, does = row.view, self.world.store.does(task)
        if view.flow is None or view.flow.when is True:
            return
        states = {name: other.view for name, other in does.items()}
        left_out = view.state == StepState.SKIPPED and not view.attempt
        needed = _holds(view.flow.when, task.data, states)
        require(needed != left_out, f"{task.id}: {view.name} is {view.state}, needed: {needed}")


def _holds(when: Any, data: Mapping[str, Any], states: Mapping[str, StepView]) -> bool:
    """Return whether a condition that was drawn holds, by how steps have ended."""
    ((what, content),) = when.items()
    match what:
        case "$not":
            return not _holds(content, data, states)
        case "$done":
            return states[content[0]].state == StepState.PROCESSED
        case "$passed":
            name, *codes = content
            view = states[name]
            refused = view.state == StepState.SKIPPED and view.outcome == Outcome.REJECTED
            return refused and (not codes or view.error_code in codes)
        case "$first":
            origin, *path = content[0]["$from"]
            if origin:
                return states[origin].state == StepState.PROCESSED
            return bool(data.get(path[0], content[1]))
    return bool(data[content[1]])


def run(seed: int, *, broken: frozenset[str] = frozenset()) -> str | None:
    """Run a seed; return what went wrong, or None."""
    try:
        Run(seed, broken=broken).go()
    except Broken as error:
        return str(error)
    return None
