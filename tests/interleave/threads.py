"""Actors in threads: a controller lets one run at a time."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from django.db import connections

from .choices import Choices

LOOK_AFTER_S = 0.003  # an actor that is silent for this long may wait for a lock
IMPATIENT_LOOKS = 10  # before that counts, where a statement gives up by itself first
STUCK_AFTER_S = 60.0
TICK_S = 0.001  # that each switch point takes by the run's clock
START = 1_900_000_000.0  # the Unix time at which each run begins

WAITING = (
    "SELECT pid FROM unnest(%(pids)s::int[]) AS pid WHERE cardinality(pg_blocking_pids(pid)) > 0"
)
ALIVE = "SELECT 1 FROM pg_stat_activity WHERE pid = %(pid)s"
KILL = "SELECT pg_terminate_backend(%(pid)s)"  # to wait in it takes at least a tenth of a second


class Crashed(BaseException):
    """The process of an actor has died: raised at a switch point, and at all later ones of its job."""


@dataclass(eq=False)
class Actor:
    """A thread that does jobs of one kind, one after the other; `at` is the switch point where it stands."""

    name: str
    stage: "Stage"
    job: Callable[[], object] | None = None
    what: str = ""
    at: str = ""
    waits: bool = False  # for a lock that another actor has
    released: bool = False  # it waited: it stands still at its next switch point
    dead: bool = False
    error: BaseException | None = None
    pid: int = 0
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        threading.Thread(target=self._serve, name=self.name, daemon=True).start()

    def _serve(self) -> None:
        self.stage.local.actor = self
        while True:
            self.go.acquire()
            if self.job is None:
                break
            try:
                self.job()
            except (Exception, Crashed) as error:  # noqa: BLE001 - the judge reads it
                self.error = error
            if self.dead or self.error:
                connections["default"].close()
            self.job, self.dead = None, False
            self.stage.back.put(self)
        connections["default"].close()

    def reached(self, point: str, *, fault: bool = False) -> str:
        """Stand still here if the run chooses so; return the fault that strikes, if any."""
        stage = self.stage
        if self.dead:
            raise Crashed
        if stage.free:
            return ""
        stage.now += TICK_S
        stage.points += 1
        if self.released or stage.switches():
            self.released = False
            self.at = point
            stage.back.put(self)
            self.go.acquire()
            self.at = ""
        struck = stage.strikes(self, point) if fault else ""
        if struck == "crash":
            self.die()
        return struck

    def die(self) -> None:
        """End the process here: its connection closes without a commit."""
        self.dead = True
        self.stage.note(self, "dies")
        driver = connections["default"].connection
        if driver is not None and self.pid:
            driver.close()
            self.stage.gone(self.pid)
        raise Crashed


class Stage:
    """All actors, and the choices which of them goes on."""

    def __init__(self, names: list[str], admin: Any) -> None:
        self.admin = admin  # a connection in autocommit, for looks at the others
        self.local = threading.local()
        self.back: SimpleQueue[Actor] = SimpleQueue()
        self.free = True  # nothing is switched, nothing strikes
        self.now = START
        self.points = 0
        self.impatient = False  # statements that meet a lock give up soon
        self.preempt = 0.1
        self.faults = 0.0
        self.faults_left = 0
        self.choices = Choices(0)
        self.trace: list[str] | None = None
        self.struck: list[str] = []
        self.actors = {name: Actor(name, self) for name in names}

    def begin(self, choices: Choices, trace: list[str] | None) -> None:
        """Begin another run."""
        self.choices, self.trace, self.free = choices, trace, True
        self.now, self.points, self.struck = START, 0, []
        for actor in self.actors.values():
            assert actor.job is None, f"{actor.name} is still at {actor.what}"
            actor.error = None

    def actor(self) -> Actor | None:
        """Return the actor of this thread."""
        return getattr(self.local, "actor", None)

    def switches(self) -> bool:
        """Choose whether the actor that runs stands still."""
        return self.choices.chance(self.preempt)

    def strikes(self, actor: Actor, point: str) -> str:
        """Choose the fault that strikes an actor at a point of its transaction, if any."""
        if self.faults_left <= 0 or not self.choices.chance(self.faults):
            return ""
        kinds = ["crash", "killed"]
        if point == "commit":
            kinds += ["commit fails", "answer lost"]
        self.faults_left -= 1
        kind = self.choices.pick(kinds)
        self.struck.append(kind)
        self.note(actor, f"FAULT {kind} at {point}")
        return kind

    def note(self, actor: Actor | None, text: str) -> None:
        """Add a line to the trace."""
        if self.trace is not None:
            name = actor.name if actor else "-"
            self.trace.append(f"{self.now - START:9.3f} {name:14} {text}")

    def do(self, name: str, what: str, job: Callable[[], object]) -> None:
        """Give an idle actor a job, and let it run."""
        actor = self.actors[name]
        actor.job, actor.what, actor.error = job, what, None
        self.note(actor, f"begins: {what}")
        self.run(actor)

    def run(self, actor: Actor) -> None:
        """Let an actor go on until it stands still, ends, or waits for a lock."""
        actor.go.release()
        self._await(actor)
        waiting = [other for other in self.actors.values() if other.waits]
        if waiting:
            self._recheck(waiting)

    def idle(self) -> list[str]:
        """Return the actors without a job."""
        return [name for name, actor in self.actors.items() if actor.job is None]

    def standing(self) -> list[Actor]:
        """Return the actors that stand at a switch point."""
        return [
            actor for actor in self.actors.values() if actor.job is not None and not actor.waits
        ]

    def waiting(self) -> list[Actor]:
        """Return the actors that wait for locks."""
        return [actor for actor in self.actors.values() if actor.waits]

    def recheck(self) -> None:
        """See which actors wait no more: one may be ended as part of a deadlock."""
        self._recheck(self.waiting())

    def _await(self, actor: Actor) -> None:
        looks = IMPATIENT_LOOKS if self.impatient else 0
        for number in range(int(STUCK_AFTER_S / LOOK_AFTER_S)):
            try:
                came = self.back.get(timeout=LOOK_AFTER_S)
            except Empty:
                if number >= looks and actor.pid and self._blocked([actor]):
                    actor.waits = actor.released = True
                    self.note(actor, "waits for a lock")
                    return
                continue
            self._came(came)
            if came is actor:
                return
        raise AssertionError(f"{actor.name} hangs in: {actor.what}")

    def _came(self, actor: Actor) -> None:
        actor.waits = False
        if actor.job is not None:
            self.note(actor, f"stands at: {actor.at}")
        elif actor.error is not None:
            self.note(actor, f"ended: {type(actor.error).__name__}: {str(actor.error)[:200]}")
        else:
            self.note(actor, f"ended: {actor.what}")

    def _recheck(self, waiting: list[Actor]) -> None:
        blocked = self._blocked(waiting)
        for actor in waiting:
            if actor.waits and actor.pid not in blocked:
                self._await(actor)

    def _blocked(self, actors: list[Actor]) -> set[int]:
        pids = [actor.pid for actor in actors]
        return {pid for (pid,) in self._ask(WAITING, {"pids": pids})}

    def _ask(self, statement: str, parameters: dict[str, object]) -> list[tuple[int, ...]]:
        with self.admin.cursor() as cursor:
            cursor.execute(statement, parameters)
            return list(cursor.fetchall())

    def kill(self, actor: Actor) -> None:
        """End the backend of an actor, as an administrator may."""
        self._ask(KILL, {"pid": actor.pid})
        self.gone(actor.pid)

    def gone(self, pid: int) -> None:
        """Wait until a backend has ended, and its locks with it."""
        for _ in range(100_000):
            if not self._ask(ALIVE, {"pid": pid}):
                return
        raise AssertionError(f"backend {pid} does not end")

    def end(self) -> None:
        """End all threads."""
        for actor in self.actors.values():
            actor.go.release()
