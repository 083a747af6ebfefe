"""A handle of one task: what applications ask and report of it, without its names each time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from . import requests, task_status
from .asynchronous import asynchronous

P = ParamSpec("P")
R = TypeVar("R")


class _OfTask(Generic[P, R]):
    """A function about a workflow's task, as a method of its handle."""

    def __init__(self, function: Callable[Concatenate[str, str, P], R]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, task: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, task: "TaskHandle", owner: Any = None) -> Callable[P, R]: ...
    def __get__(self, task: "TaskHandle | None", owner: Any = None) -> Self | Callable[P, R]:
        return self if task is None else partial(self.function, task.workflow, task.reference)


@dataclass(frozen=True)
class TaskHandle:
    """A task by its workflow and reference, whether it exists yet or not.

    Its methods are the functions `progress`, `request_undo`, `request_resubmit`, `amend` and `complete`, and
    the coroutine functions of these, without their first two arguments. Handles can be compared.

    >>> from uuid import uuid4
    >>> task = submit("greet", reference="42", data={"name": "Ada"})
    >>> task == TaskHandle("greet", "42")
    True
    >>> task.undo(actor="Ada", reason="I am away", id=uuid4())
    >>> run.go()
    >>> task.progress().state.value
    'undone'
    """

    workflow: str
    reference: str

    progress = _OfTask(task_status.progress)
    undo = _OfTask(requests.request_undo)
    resubmit = _OfTask(requests.request_resubmit)
    amend = _OfTask(requests.amend)
    complete = _OfTask(requests.complete)

    aprogress = _OfTask(asynchronous(task_status.progress))
    aundo = _OfTask(asynchronous(requests.request_undo))
    aresubmit = _OfTask(asynchronous(requests.request_resubmit))
    aamend = _OfTask(asynchronous(requests.amend))
    acomplete = _OfTask(asynchronous(requests.complete))
