"""Make coroutine functions of the functions that applications call."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

P = ParamSpec("P")
R = TypeVar("R")


def asynchronous(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return a coroutine function that does what `function` does, under its name with "a" in front.

    It runs in the thread that Django has for the database in asynchronous code.
    """
    in_thread = sync_to_async(function)

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return await in_thread(*args, **kwargs)

    call.__name__ = f"a{function.__name__}"
    call.__qualname__ = call.__name__
    call.__doc__ = f"Do what `{function.__name__}` does, from asynchronous code."
    return call
