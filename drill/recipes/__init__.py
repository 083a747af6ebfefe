"""How faults are made: each recipe is a context that a fault lasts for.

Entering applies the fault; leaving sees to it that it did strike, and heals. A recipe raises
AssertionError where a fault did not strike: a drill of nothing proves nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from drill.stack import Stack


class Running(Protocol):
    """What a recipe may know of the run: the stack, and the orders of the mode."""

    stack: Stack
    orders: list[str]

    def place(self, count: int, *, card: str = ..., **environment: str) -> list[str]:
        """Place orders that belong to the mode, in another environment perhaps."""

    def quiet(self) -> None:
        """Wait until every order of the mode has come to its end."""


Recipe = Callable[..., Iterator[None]]
recipes: dict[str, Callable[..., AbstractContextManager[None]]] = {}


def recipe(function: Recipe) -> Callable[..., AbstractContextManager[None]]:
    """Make a recipe known by its function's name."""
    made = contextmanager(function)
    recipes[function.__name__] = made
    return made


def apply(name: str, run: Running, given: dict[str, Any]) -> AbstractContextManager[None]:
    """Return the context of a recipe."""
    return recipes[name](run, **given)


from . import (  # noqa: E402
    clocks,
    deploys,
    messages,
    outages,
    partners,
    people,
    postgres,
    processes,
    redis,
    undoing,
)

__all__ = [
    "apply", "clocks", "deploys", "messages", "outages", "partners", "people", "postgres", "processes",
    "recipe", "recipes", "redis", "undoing",
]  # fmt: skip
