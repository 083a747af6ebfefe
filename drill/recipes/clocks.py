"""Clocks that are wrong."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from drill.flows import WAIT_S, ledger
from drill.recipes import Running, recipe
from drill.recipes.partners import FLAKY, scripted
from drill.recipes.schedules import scheduled
from drill.stack import Stack
from drill.waiting import wait_for

CLOCK_OFF = "SELECT count(*) FROM orchestration_worker WHERE queue = %s AND abs(clock_offset) > 290"
JUMPS = "SELECT count(*) FROM orchestration_clockjump"
UNDONE = """
SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s) AND undo_at IS NOT NULL
"""

IN_JUMP = 59  # due times of a schedule, at least, in an hour
# Which of some tasks await that step, or wait for its time.
WAIT = """
SELECT count(*) FROM orchestration_wait w JOIN orchestration_step s ON s.id = w.step_id
JOIN orchestration_task t ON t.id = s.task_id WHERE t.reference = ANY(%s) AND s.name = %s
"""


def faked(shift: str) -> dict[str, str]:
    """Return the environment of a process whose clock is shifted, by "+5m" for example."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    return {"LD_PRELOAD": str(library), "FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@contextmanager
def adjustable_clock(stack: Stack) -> Iterator[Callable[[int], None]]:
    """Run Postgres with a clock that can be set; yield the setter, in seconds from the real time.

    The setter returns once the leader has handled the jump.
    """
    offset = stack.sockets / "faketime"
    offset.write_text("+0\n")
    offset.chmod(0o644)  # Postgres may run as another user

    def set_to(seconds: int) -> None:
        jumps = stack.count(JUMPS)
        offset.write_text(f"{seconds:+d}\n")
        wait_for(lambda: stack.count(JUMPS) > jumps, "the leader notices the jump", 15)

    shift = faked("")
    del shift["FAKETIME"]
    shift |= {"FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1"}
    with stack.replaced("postgres", **shift):
        wait_for(stack.answers, "Postgres answers with an adjustable clock", 30)
        yield set_to


@recipe
def database_clock_jumps(run: Running, *, seconds: int) -> Iterator[None]:
    """The database's clock jumps while orders are in flight, and back later: no order is undone."""
    with adjustable_clock(run.stack) as set_to:
        run.place(40)
        set_to(seconds)
        yield
        run.place(20)
        set_to(0)
        run.place(20)
        run.quiet()
    wait_for(run.stack.answers, "Postgres answers again", 30)
    assert not run.stack.count(UNDONE, run.orders), "a task was undone"


@recipe
def waits_and_clock_jumps(run: Running, *, seconds: int, each: int = 8) -> Iterator[None]:
    """The clock jumps, and back later, while steps wait and a schedule runs: no wait is cut short.

    By real time, as the partner's ledger has it; and each due time that any clock showed is one task.
    """
    with adjustable_clock(run.stack) as set_to, scheduled(run, least=IN_JUMP) as is_past_all:
        timed = _timed(run, each)
        wait_for(lambda: run.stack.count(WAIT, timed, "timed") == each, "they wait", 60)
        timed += _timed(run, each)
        wait_for(lambda: run.stack.count(WAIT, timed, "never") == each, "others await", 30)
        assert run.stack.count(WAIT, timed, "timed"), "the first wait no longer"
        set_to(seconds)
        timed += _timed(run, each)  # before each process has measured the clock again
        yield
        set_to(0)
        timed += _timed(run, each)
        run.quiet()
        wait_for(is_past_all, "the schedule has caught up", 90)
    wait_for(run.stack.answers, "Postgres answers again", 30)
    _require_waits(run, timed)


def _timed(run: Running, count: int) -> list[str]:
    """Submit tasks with a step that waits for what never comes, and one that waits for its time."""
    tasks = {f"timed-{uuid4().hex[:8]}": dict[str, str]() for _ in range(count)}
    run.orders += tasks
    run.stack.python("drill.flows.submit", "drill_timed", json.dumps(tasks))
    return list(tasks)


def _require_waits(run: Running, timed: Sequence[str]) -> None:
    """Fail if a step went on before its wait was over, by the partner's clock, or never did."""
    tasks = [task for task, *_ in run.stack.sql(ledger.TASKS, list(timed), list(timed))]
    at: dict[str, dict[str, datetime]] = {task: {} for task in tasks}
    for effect in ledger.effects(run.stack, tasks):
        at[effect.task][effect.step] = effect.at
    waited = [
        (times[after] - times[before]).total_seconds()
        for times in at.values()
        for before, after in (("begun", "late"), ("late", "timed"))
    ]
    assert len(waited) == 2 * len(timed), f"{len(waited)} waits are over"
    assert min(waited) >= WAIT_S, f"a wait of {WAIT_S} s was over after {min(waited)} s"


@recipe
def clock_off(run: Running, *, process: str, shift: str) -> Iterator[None]:
    """A worker's clock is wrong until its orders have ended; its steps do not expire for that."""
    queue = process.removeprefix("work-")
    with run.stack.replaced(process, **faked(shift)):
        wait_for(lambda: run.stack.count(CLOCK_OFF, queue), "the worker is at work", 25)
        yield
        run.quiet()


@recipe
def leaders_clock_off(run: Running, *, shift: str) -> Iterator[None]:
    """The leading supervisor's clock is wrong while steps fail."""
    with scripted(run.stack, FLAKY), run.stack.replaced("supervisor", **faked(shift)):
        wait_for(lambda: run.stack.count(CLOCK_OFF, "supervisor"), "the supervisor is at work", 25)
        yield
        run.quiet()
