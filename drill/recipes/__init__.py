"""Recipes: context managers that apply a fault on entry and heal it on exit.

A recipe raises AssertionError if the fault had no effect: such a drill would prove nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from drill.stack import Stack


class Running(Protocol):
    """The run as a recipe sees it: the stack, and the orders of the mode."""

    stack: Stack
    orders: list[str]

    def place(
        self,
        count: int,
        *,
        card: str = ...,
        also: str = ...,
        country: str = ...,
        tree: Path | None = ...,
        **environment: str,
    ) -> list[str]:
        """Place orders that belong to the mode; `environment` adds variables.

        `tree` has the files of another release.
        """

    def retries(self) -> int:
        """Return the number of attempts beyond the first of each step of these orders."""

    def quiet(self) -> None:
        """Wait until every order of the mode has ended."""


Recipe = Callable[..., Iterator[None]]
recipes: dict[str, Callable[..., AbstractContextManager[None]]] = {}


def recipe(function: Recipe) -> Callable[..., AbstractContextManager[None]]:
    """Register a recipe under its function's name."""
    manager = contextmanager(function)
    recipes[function.__name__] = manager
    return manager


def apply(name: str, run: Running, arguments: dict[str, Any]) -> AbstractContextManager[None]:
    """Return the context manager of a recipe."""
    return recipes[name](run, **arguments)


from . import (  # noqa: E402, F401 - importing them registers their recipes
    afterwards,
    banks,
    clocks,
    crashes,
    deploys,
    flows,
    ha,
    messages,
    outages,
    parcels,
    partners,
    people,
    postgres,
    processes,
    redis,
    removals,
    restore,
    schedules,
    stock,
    undoing,
)
