"""The decorated functions, as Django's Tasks has them and one thing more."""

from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from django_tasks.base import Task

P = ParamSpec("P")
T = TypeVar("T")
PREFIX = "tasks."  # of the names of agents and workflows; then the queue's name


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTask(Task[P, T]):
    """A decorated function. `@task(idempotent=True)`: it may be called again after a failure.

    Any other function is called again only after a `Transient`, by which it says that it did nothing.
    """

    idempotent: bool = False
