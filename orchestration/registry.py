"""What the applications declare: workflows, agents, receivers of status messages, audits, and more.

Filled when Django starts, by each application's `workflow` module (and `agents`, `status`, …, which
it imports); `checks` then verifies that everything named is there.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .workflows.schedule import Schedule
from .workflows.step import Compute, Step
from .workflows.workflow import Workflow

if TYPE_CHECKING:
    from .agents.base import Agent
    from .applications.audits import Part, Violation
    from .applications.external_view import ExternalView
    from .applications.status_messages import Status
    from .cluster.duty import Duty

T = TypeVar("T")


class NotRegistered(LookupError):
    """An undeclared name; its text gives the nearest one that exists."""


NONE = "; none is declared"  # is its application in INSTALLED_APPS?

registered_twice: list[str] = []  # for the system checks
_places: dict[tuple[str, str], str] = {}  # where in the source each was registered

workflows: dict[str, Workflow] = {}
schedules: dict[str, Schedule] = {}
agents: dict[str, "type[Agent]"] = {}
receivers: "dict[str, Callable[[Sequence[Status]], None]]" = {}
audits: "dict[str, Callable[[Part], Iterable[Violation]]]" = {}
duties: "dict[str, Duty]" = {}  # of the housekeeper
external_views: "dict[str, Callable[[str, bool], ExternalView | None]]" = {}
scopes: dict[str, str] = {}  # what a token may be good for, and what that means


def add(table: dict[str, T], kind: str, name: str, thing: T, place: str) -> None:
    """Register a thing under its name; note if another place in the source has done so already."""
    before = _places.setdefault((kind, name), place)
    if before != place:
        registered_twice.append(f"two {kind}s have the name {name!r}: in {before} and in {place}")
    table[name] = thing


def get(table: dict[str, T], kind: str, name: str) -> T:
    """Return `table[name]`; raise `NotRegistered` with a suggestion otherwise."""
    try:
        return table[name]
    except KeyError:
        raise NotRegistered(f"there is no {kind} {name!r}{suggest(name, table) or NONE}") from None


def step(workflow: str, name: str) -> Step | None:
    """Return a workflow's step by its name, or by that of the signal it awaits, if one is declared."""
    declared = workflows.get(workflow)
    steps = declared.steps if declared else ()
    return next(
        (candidate for candidate in steps if name in {candidate.name, candidate.signal}), None
    )


def function(workflow: str, name: str) -> Compute | None:
    """Return the function that computes a workflow's step, if one is declared."""
    declared = step(workflow, name)
    return declared.compute if declared else None


def suggest(name: str, known: Iterable[Any]) -> str:
    """Return the end of an error: the nearest known name, or all of them, if there are any."""
    names = sorted(known)
    if near := nearest(name, names):
        return f"; did you mean {near!r}?"
    return f"; known: {', '.join(names)}" if names else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like `name`; nothing if none is like it."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return near[0] if near else ""
