"""What log lines are about: given with a line, or the attempt that the code of an agent works on."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol
from uuid import UUID


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


def about_task(task: UUID, attempt: int | None = None) -> Mapping[str, object]:
    """Return the fields of a log line about a task whose reference is not at hand."""
    return {"task": str(task)} | ({} if attempt is None else {"attempt": attempt})


def about_reference(workflow: str, reference: str) -> Mapping[str, object]:
    """Return the fields of a log line about a task, or what is to become one."""
    return {"workflow": workflow, "reference": reference}
