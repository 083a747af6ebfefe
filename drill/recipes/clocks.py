"""Clocks that are off."""

from collections.abc import Iterator
from pathlib import Path

from drill.recipes import Running, recipe
from drill.recipes.processes import sole_leader
from drill.waiting import wait_for

ODD = "SELECT count(*) FROM orchestration_worker WHERE queue = %s AND abs(clock_offset) > 290"


def faked(shift: str) -> dict[str, str]:
    """Return the environment of a process whose clock is off by `shift`, such as "+5m"."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    return {"LD_PRELOAD": str(library), "FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


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
