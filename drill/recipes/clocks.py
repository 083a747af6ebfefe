"""Clocks that are off."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from drill.recipes import Running, recipe
from drill.recipes.processes import sole_leader
from drill.stack import Stack
from drill.waiting import wait_for

ODD = "SELECT count(*) FROM orchestration_worker WHERE queue = %s AND abs(clock_offset) > 290"


def faked(shift: str) -> dict[str, str]:
    """Return the environment of a process whose clock is off by `shift`, such as "+5m"."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    return {"LD_PRELOAD": str(library), "FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


JUMPS = "SELECT count(*) FROM orchestration_clockjump"
UNDONE = """
SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s) AND undo_at IS NOT NULL
"""


@contextmanager
def databases_clock(stack: Stack) -> Iterator[Callable[[int], None]]:
    """Have a Postgres whose clock can be set; give what sets it, in seconds from the right time.

    What sets it waits until the leader has dealt with the jump.
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
        wait_for(stack.answers, "Postgres with a clock that can be set answers", 30)
        yield set_to


@recipe
def database_clock_jumps(run: Running, *, seconds: int) -> Iterator[None]:
    """The database's clock jumps while orders are under way, and later back: none is undone."""
    with databases_clock(run.stack) as set_to:
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
    """A worker's clock is off, until its orders are done; what it works on does not expire for it."""
    queue = process.removeprefix("work-")
    with run.stack.replaced(process, **faked(shift)):
        wait_for(lambda: run.stack.count(ODD, queue), "the odd worker is at work", 25)
        yield
        run.quiet()


@recipe
def leaders_clock_off(run: Running, *, shift: str) -> Iterator[None]:
    """The leading supervisor's clock is off while steps fail."""
    fault = {"partner": "*", "action": "*", "fault": "reset", "probability": 0.3}
    run.stack.sandbox("/faults", {"faults": [fault]}, "PUT")
    try:
        with sole_leader(run.stack, **faked(shift)):
            wait_for(lambda: run.stack.count(ODD, "supervisor"), "the odd leader is there", 25)
            yield
            run.quiet()
    finally:
        run.stack.sandbox("/faults", method="DELETE")
