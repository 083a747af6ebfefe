"""The attempt that the code of an agent works on: its log lines and its calls to the partner name it."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol


class Attempt(Protocol):
    """What log lines and spans take of a request."""

    @property
    def reference(self) -> str:
        """Return the task's reference."""

    @property
    def name(self) -> str:
        """Return the step's name."""

    @property
    def step(self) -> int:
        """Return the step's id."""

    @property
    def attempt(self) -> int:
        """Return the number of the attempt."""


# One variable that refers to the request: to set it costs nothing measurable; lines that are written take
# from it what they show.
subject: ContextVar[Attempt | None] = ContextVar("subject", default=None)


def about(attempt: Attempt) -> Mapping[str, object]:
    """Return the fields of a log line about an attempt, for `extra`."""
    return {"reference": attempt.reference, "step": attempt.name, "attempt": attempt.attempt}
