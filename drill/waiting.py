"""Waiting for conditions and through faults."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
GROWTH, LONGEST = 1.2, 0.2  # of the pauses; the longest in seconds


def wait_for(
    condition: Callable[[], Value], what: str, seconds: float = 30.0, pause: float = 0.02
) -> Value:
    """Return `condition()` once it is true; raise AssertionError with `what` after a deadline.

    The pauses between two looks grow: a look may cost as much as what it waits for.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(pause)
        pause = min(pause * GROWTH, max(pause, LONGEST))


def pause(seconds: float) -> None:
    """Wait while a fault lasts or a rate is measured."""
    time.sleep(seconds)
