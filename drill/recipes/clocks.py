"""Clocks that are wrong."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from drill.recipes import Running, recipe
from drill.recipes.partners import FLAKY, scripted
from drill.stack import Stack
from drill.waiting import wait_for

CLOCK_OFF = "SELECT count(*) FROM orchestration_worker WHERE queue = %s AND abs(clock_offset) > 290"
JUMPS = "SELECT count(*) FROM orchestration_clockjump"
UNDONE = """
SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s) AND undo_at IS NOT NULL
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
