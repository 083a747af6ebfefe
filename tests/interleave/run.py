"""One run: tasks, trouble, quiet, and a verdict."""

import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

from orchestration import conf
from orchestration.assurance.retention.removal import REMOVE_TASKS
from orchestration.cluster.debounce import Pauses
from orchestration.database import sql
from orchestration.messaging import queues
from orchestration.models import Hold, TaskRequest, fields, low_water
from orchestration.testing.moments import NEXT
from orchestration.transitions import holds, resubmit, undo

from . import declared, expected, jobs, judge, services
from .choices import KINDS, Choices
from .hooks import IMPATIENT, NO_LIMIT
from .jobs import NEVER
from .place import NAMES, set_time
from .threads import TICK_S, Actor, Stage

LONGEST_WAIT_S = 600.0  # that anything may wait for the next moment while nothing is held
LOOKS_FROM_HEAD = 2  # that find nothing, before a run counts as standing still
DAY = 86_400.0
GO_ON = "go on "  # what an actor began counts once, in how many parts it is done
QUIET = """
SELECT (SELECT count(*) FROM orchestration_task WHERE state NOT IN ('processed', 'undone')),
    (SELECT count(*) FROM orchestration_submission WHERE refused_at IS NULL),
    (SELECT count(*) FROM orchestration_taskrequest WHERE done_at IS NULL AND refused_at IS NULL),
    (SELECT count(*) FROM orchestration_undorequest), (SELECT count(*) FROM orchestration_join)
"""
STATES = """
SELECT t.reference, t.state, string_agg(s.name || ' ' || s.direction || ' ' || s.process_state || ' '
    || s.attempt || coalesce(' ' || s.run_after::text, ''), ', ' ORDER BY s.id)
FROM orchestration_task t JOIN orchestration_step s ON s.task_id = t.id GROUP BY t.id ORDER BY t.reference
"""


class Run:
    """A run of a seed on a stage; after `go`, `wrong` is what is wrong."""

    def __init__(
        self, stage: Stage, seed: int, replay: Sequence[int] | None, *, kind: str, trace: bool
    ) -> None:
        self.seed, self.stage = seed, stage
        self.choices = choices = Choices(seed, replay)
        self.trace: list[str] | None = [] if trace else None
        stage.begin(choices, self.trace)
        self.wrong: list[str] = []
        self.kind = kind or choices.of(KINDS)
        late, usual = (
            self.kind == "mended late",
            self.kind in {"usual", "children", "undone in part"},
        )
        self.calm = usual and choices.chance(0.25)
        stage.preempt = (0.02, 0.1, 0.3)[choices.below(3)]
        self.go_on = 3.0 if usual else (1.0, 3.0)[choices.below(2)]
        stage.faults = 0.0 if self.calm else (0.0, 0.01, 0.05)[choices.below(3)]
        stage.faults_left = 3
        stage.impatient = choices.chance(0.3)
        sql.BRIEFLY = IMPATIENT if stage.impatient else NO_LIMIT
        # with marks, looks always begin at one, as if old transactions kept dead entries
        marked = choices.chance(0.2)
        conf.SLOW_LOOK_S, low_water.COSTLY = (-1.0, -1) if marked else (NEVER, sys.maxsize)
        self.workers = services.Workers(choices, self.calm, {"rejected": 60.0} if late else {})
        self.memories = {name: jobs.memory() for name in NAMES if name.startswith("supervisor")}
        self.asked = 0
        declares = declared.OF_KIND.get(self.kind, declared.WORKFLOWS)
        workflows = [workflow.name for workflow in declares]
        self.tasks = [
            (choices.pick(workflows), f"{seed}-{number}") for number in range(1 + choices.below(3))
        ]

    def go(self) -> None:
        """Run to the end, and judge."""
        shim = SimpleNamespace(urandom=random.Random(self.seed).randbytes)  # noqa: S311
        with patch.object(fields, "os", shim):
            self._begin()
            self.stage.free = False
            left = (5, 10, 20, 30)[self.choices.below(4)]
            while left:
                options = self._options()
                label = list(options)[
                    self.choices.weighted([weight for weight, _ in options.values()])
                ]
                options[label][1]()
                left -= not label.startswith(GO_ON)
            self.settle()
            self.drain()
        if not self.wrong:
            set_time(self.stage)
            faults = bool(self.stage.struck or self.workers.faults)
            self.wrong = judge.problems(calm=self.calm and not faults)

    def _begin(self) -> None:
        """Bring the tasks, or the first of a usual run, to where its kind begins."""
        self._timed()
        for workflow, reference in self.tasks[: 1 if self.kind == "usual" else None]:
            jobs.post(workflow, reference)
            self.asked += 1
        if self.kind == "posted again":
            self.drain()
            self.stage.now += 1.1 * DAY
        elif self.kind == "mended late":  # their first steps are refused, and were not mended
            jobs.take()
            jobs.schedule("scheduler-1", look=True)
            self._answer_all()
            jobs.schedule("scheduler-1", look=False)
            self.wait(declared.COMMON["resolve_within"] + self.choices.below(2) - 0.5)
            if self.choices.chance(0.5):
                # a supervisor asks for undos, and a person mends the steps
                self._timed()
                jobs.sweep("supervisor-1", self.memories["supervisor-1"])
                for _ in jobs.in_error():
                    jobs.mend()
                if self.choices.chance(0.5):  # a scheduler claims them, and dies before it undoes
                    jobs.schedule("scheduler-1", look=True, undo=False)
                    self._answer_all()
                    jobs.schedule("scheduler-1", look=False)

    def _answer_all(self, *, well: bool = False) -> None:
        """Let agents answer all requests."""
        for agent in declared.AGENTS:
            while self.workers.waiting([agent.name]):
                self.answer(agent, well=well)

    def _options(self) -> dict[str, tuple[float, Callable[[], object]]]:
        """Return the possible next events, with weights and functions.

        The first, nothing, is the plainest: no seed draws it, but a shrunk run has it.
        """
        options: dict[str, tuple[float, Callable[[], object]]] = {"nothing": (0.0, lambda: None)}
        for actor in self.stage.standing():
            options[GO_ON + actor.name] = (self.go_on, lambda actor=actor: self.resume(actor))
        idle = set(self.stage.idle())
        for name, what, weight, job in self._jobs():
            if name in idle:
                options[f"{name}: {what}"] = (
                    weight,
                    lambda name=name, what=what, job=job: self.begin(name, what, job),
                )
        options |= self._surroundings()
        return options

    def _jobs(self) -> list[tuple[str, str, float, jobs.Job]]:
        again = self.kind == "posted again"
        late = self.kind == "mended late"
        workflow, reference = self.tasks[self.stage.points % len(self.tasks)]
        possible: list[tuple[str, str, float, jobs.Job]] = []
        if self.asked < len(self.tasks):
            work, ref = self.tasks[self.asked]
            possible.append(("application", f"post {ref}", 4.0, lambda: jobs.post(work, ref)))
        for number in (1, 2):
            possible.append((f"submission-{number}", "take", 1.0, jobs.take))
            by = f"scheduler-{number}"
            possible.append(
                (by, "reply", 1.5 if late else 0.5, partial(jobs.schedule, by, look=False))
            )
            possible.append(
                (by, "look", 0.5 if late else 1.0, partial(jobs.schedule, by, look=True))
            )
            name = f"supervisor-{number}"
            often = 0.1 if again else 1.5 if late else 0.7
            possible.append((name, "sweep", often, partial(jobs.sweep, name, self.memories[name])))
        for duty, weight in jobs.DUTIES:
            often = weight * (2.0 if again and duty is REMOVE_TASKS else 0.1)
            job = partial(jobs.keep_house, "housekeeper-1", duty)
            possible.append(("housekeeper", duty.name, often, job))
        posted = 3.0 if again else 0.3
        amended = 4.0 if self.kind == "amended" else 0.0
        number = self.stage.points
        who, about, again_often = "application", (workflow, reference), 1.5 if late else 0.5
        possible += [
            (who, f"post {reference} again", posted, lambda: jobs.post(*about)),
            (who, f"post another {reference}", posted / 2, lambda: jobs.post(*about, "Bob")),
            (who, f"ask to undo {reference}", 0.3, lambda: jobs.ask_undo(*about, number)),
            (who, f"ask to resubmit {reference}", again_often, lambda: jobs.ask_resubmit(*about, number)),
            (who, f"ask to amend {reference}", amended, lambda: jobs.ask_amend(*about, number)),
            ("operator", "mend", 1.0 if late else 0.5, jobs.mend),
            ("operator", "mend by hand", 0.2, jobs.mend_by_hand),
            ("operator", f"undo {reference}", 0.05 if late else 0.3, lambda: jobs.undo_task(reference)),
            ("operator", f"hold {reference}", 0.1, lambda: jobs.hold(reference)),
            ("operator", "release", 0.2, jobs.release),
            ("operator", f"prioritize {reference}", 0.2, lambda: jobs.prioritize(reference, number % 3)),
        ]  # fmt: skip
        if self.kind == "undone in part":
            ask = partial(jobs.ask_undo_part, *about, number)
            possible.append((who, f"ask to undo a part of {reference}", 2.0, ask))
        if self.kind in {"children", "undone in part"}:
            possible.append(("operator", "undo a child", 0.3, partial(jobs.undo_child, number)))
        return possible

    def _surroundings(self) -> dict[str, tuple[float, Callable[[], object]]]:
        """Return the possible events of agents, time and faults."""
        options: dict[str, tuple[float, Callable[[], object]]] = {}
        waiting = self.workers.waiting([agent.name for agent in declared.AGENTS])
        for agent in declared.AGENTS:
            if agent.name in waiting:
                options[agent.name] = (4.0, lambda agent=agent: self.answer(agent))
        if self.workers.late:
            options["late replies"] = (1.0, self.workers.deliver)
        options["0.3 s"] = (0.7, lambda: self.wait(0.3))
        if not self.calm:
            late = self.kind == "mended late"
            options["11 s"] = (0.3, lambda: self.wait(11.0))
            options["31 s"] = (1.0 if late else 0.2, lambda: self.wait(31.0))
            options["a day"] = (0.03, lambda: self.wait(1.1 * DAY))
            options["Redis is lost"] = (0.05, self.flush)
            for actor in self.stage.standing() + self.stage.waiting():
                if self.stage.faults and self.stage.faults_left > 0:
                    options[f"kill {actor.name}"] = (0.05, lambda actor=actor: self.kill(actor))
        return options

    def begin(self, name: str, what: str, job: jobs.Job) -> None:
        """Give an idle actor a job."""
        if what.startswith("post") and not what.endswith("again") and "another" not in what:
            self.asked += 1
        self.stage.do(name, what, job)
        self._look()

    def resume(self, actor: Actor) -> None:
        """Let an actor that stands still go on."""
        self.stage.note(actor, f"goes on: {actor.at}")
        self.stage.run(actor)
        self._look()

    def _look(self) -> None:
        """Record the errors of ended jobs, except those that faults explain."""
        for actor in self.stage.actors.values():
            error, actor.error = actor.error, None
            for exception in expected.others(error) if error else ():
                self.wrong.append(
                    f"{actor.what} raised {type(exception).__name__}: {sql.first_line(exception)}"
                )  # type: ignore[arg-type]

    def answer(self, agent: type[services.Service], *, well: bool = False) -> None:
        """Let an agent answer a request."""
        came = self.workers.answer(agent, well=well)
        self.stage.note(None, f"{agent.name}: {came}")

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.stage.note(None, f"{seconds} s pass")
        self.stage.now += seconds

    def flush(self) -> None:
        """Lose what Redis has."""
        self.stage.note(None, "FAULT Redis is lost")
        self.stage.struck.append("Redis is lost")
        queues.connection().flushdb()
        self.workers.marked.clear()

    def kill(self, actor: Actor) -> None:
        """End the backend of an actor that stands still or waits."""
        self.stage.note(actor, "FAULT its backend is killed")
        self.stage.struck.append("killed")
        self.stage.faults_left -= 1
        self.stage.kill(actor)
        self.stage.recheck()
        self._look()

    def settle(self) -> None:
        """Let all jobs end without a switch."""
        self.stage.note(None, "all go on to their ends")
        self.stage.free = True
        for _ in range(200):
            for actor in self.stage.standing():
                self.stage.run(actor)
                self._look()
            if not self.stage.waiting():
                if not self.stage.standing():
                    return
            else:
                self.stage.recheck()
        self.wrong.append("actors wait for each other without end")

    def drain(self) -> None:
        """Do everything without faults until nothing is due."""
        Pauses.end_all()
        self.stage.free = True
        last, again = "", 0
        for _ in range(60):
            if self._round():
                return
            now = str((sql.run(STATES, {}), sql.run(QUIET, {})))
            if now != last or self._later():
                again = 0
            elif (again := again + 1) > LOOKS_FROM_HEAD:
                break
            last = now
        states = "; ".join(f"{ref}: {state}: {steps}" for ref, state, steps in sql.run(STATES, {}))
        open_ = list(TaskRequest.objects.filter(done_at=None).values())
        self.wrong.append(f"it does not come to rest: {sql.run(QUIET, {})} {states} {open_}")

    def _round(self) -> bool:
        """Let all actors finish, and sweep if work is left; return whether all is done."""
        self._timed()
        jobs.take()
        for held in Hold.objects.filter(until=None):
            holds.release(held.id, actor="olga", reason="go on")
        self.workers.deliver()
        jobs.keep_house("housekeeper-1", *jobs.OF_TIME)
        for _ in range(3):
            jobs.schedule("scheduler-1", look=True)
            self.stage.now += 0.01
            self._timed()
            if not self.workers.waiting([agent.name for agent in declared.AGENTS]):
                break
            self._answer_all(well=True)
        if self._quiet():
            return True
        jobs.sweep("supervisor-1", self.memories["supervisor-1"])
        jobs.schedule("scheduler-1", look=True)
        for step in jobs.in_error():
            if resubmit.resubmit(
                step.id, attempt=step.attempt, actor="olga", reason="mended"
            ) and undo.undo(step.task_id, actor="olga", reason="cannot be mended", force=True):
                jobs.done_by_hand(step)
        return self._quiet()

    def _quiet(self) -> bool:
        return sql.run(QUIET, {}) == [(0, 0, 0, 0, 0)] and not queues.waiting([queues.SCHEDULER])

    def _later(self) -> bool:
        """Go on to the next moment at which something is due; return whether there is one."""
        ((at,),) = sql.run(NEXT, {"receivers": [], "scheduled": False})
        if at is None:  # what is committed behind a mark is found by the next look from the head
            self.stage.now += low_water.LONGEST_S + 1.0
            return False
        wait = at.timestamp() - self.stage.now
        if wait > LONGEST_WAIT_S:
            self.wrong.append(f"nothing is due for {wait:.0f} s: {sql.run(STATES, {})}")
        self.stage.now += wait + TICK_S
        return True

    def _timed(self) -> None:
        set_time(self.stage)
