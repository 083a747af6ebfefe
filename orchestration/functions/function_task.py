"""The decorated functions, as Django's Tasks has them and one thing more."""

from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from django_tasks.base import Task

P = ParamSpec("P")
T = TypeVar("T")
DECLARED: "dict[str, FunctionTask[..., Any]]" = {}  # all that were decorated, by their paths
PREFIX = "tasks."  # of the names of agents and workflows; then the queue's name


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTask(Task[P, T]):
    """A decorated function. `@task(idempotent=True)`: it may be called again after a failure.

    Any other function is called again only after a `Transient`, by which it says that it did nothing.
    `by_hand=True`: operators may start it, with any arguments.
    """

    idempotent: bool = False
    by_hand: bool = False

    def __post_init__(self) -> None:
        Task.__post_init__(self)
        DECLARED.setdefault(self.module_path, self)  # and not a copy of it by `using`
