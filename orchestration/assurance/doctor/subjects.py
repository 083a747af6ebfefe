"""The subjects of the doctor: each has a way to gather its facts, and checks that judge them.

A check is a function of facts alone and yields Django's messages, with the remedy as the hint: an Error
loses or stops work, a Warning will at some time, Info is a note. Its id is the subject's name and the
function's.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from threading import Thread
from typing import Any, Generic, TypeVar

from django.core.checks import CheckMessage, Error
from django.db import connections

Facts = TypeVar("Facts")
Kind = Callable[..., CheckMessage]  # Error, Warning, Info
UNREACHABLE = "unreachable"  # the last part of the id of what does not answer


class Unanswered(Exception):
    """A subject does not answer; the message is a sentence."""


class Moot(Exception):
    """There are no facts, and no need to say so: there is nothing to look at, or another subject says why."""


class Subject(Generic[Facts]):
    """One part that is looked at; `remedy` is for when it does not answer, which is a message of `kind`."""

    def __init__(
        self,
        name: str,
        gather: Callable[[], Facts],
        *,
        remedy: str,
        kind: Kind = Error,
    ) -> None:
        self.name = name
        self.gather = gather
        self.checks: list[Callable[[Facts], Iterable[CheckMessage]]] = []
        self._remedy, self._kind = remedy, kind
        subjects.append(self)

    def check(
        self, function: Callable[[Facts], Iterable[CheckMessage]]
    ) -> Callable[[Facts], Iterable[CheckMessage]]:
        """Add a check."""
        self.checks.append(function)
        return function

    def examine(self) -> list[CheckMessage]:
        """Gather the facts and judge them."""
        try:
            return self.judge(self.gather())
        except Moot:
            return []
        except Unanswered as error:
            return [self.unreachable(str(error))]

    def judge(self, facts: Facts) -> list[CheckMessage]:
        """Return what the checks find in these facts."""
        messages = []
        for check in self.checks:
            for message in check(facts):
                message.id = message.id or f"{self.name}.{check.__name__}"
                messages.append(message)
        return messages

    def unreachable(self, problem: str) -> CheckMessage:
        """Return the message that the subject does not answer."""
        return self._kind(problem, hint=self._remedy, id=f"{self.name}.{UNREACHABLE}")


subjects: list[Subject[Any]] = []


def examine(seconds: float) -> list[CheckMessage]:
    """Examine all subjects at once; what has not answered after these seconds counts as away."""
    deadline = time.monotonic() + seconds
    begun = [(subject, _begin(subject)) for subject in subjects]
    messages = []
    for subject, result in begun:
        try:
            messages += result.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            problem = f"{subject.name} has not answered within {seconds:g} s."
            messages.append(subject.unreachable(problem))
        except Exception as error:  # noqa: BLE001 - one check that fails must not keep the others
            problem = f"{subject.name} cannot be checked: {type(error).__name__}: {error}"
            messages.append(Error(problem, hint="Report this error.", id=f"{subject.name}.failed"))
    return sorted(messages, key=lambda message: (-message.level, str(message.id)))


def _begin(subject: Subject[Any]) -> "Future[list[CheckMessage]]":
    """Examine a subject in a thread that the process does not wait for when it ends."""
    result: Future[list[CheckMessage]] = Future()

    def run() -> None:
        try:
            result.set_result(subject.examine())
        except BaseException as error:  # noqa: BLE001 - raised where the result is read
            result.set_exception(error)
        finally:
            connections.close_all()  # this thread's

    Thread(target=run, name=f"doctor {subject.name}", daemon=True).start()
    return result
