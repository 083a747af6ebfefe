"""One mistake in a declaration, and the names that are allowed in one."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
LONGEST_NAME = 60  # the columns
MARKS = "letters, digits, underscores, hyphens and full stops"


class Problem(NamedTuple):
    """What is wrong, under the id of its system check, and what to do about it."""

    id: str
    text: str
    hint: str = ""

    def of(self, subject: str, after: str = ": ") -> "Problem":
        """Return it with its subject in front."""
        return self._replace(text=f"{subject}{after}{self.text}")


def in_name(kind: str, name: Any) -> Iterable[Problem]:
    """Yield why a name cannot be searched for, written in an address, or kept in its column."""
    if not isinstance(name, str):
        yield Problem("E006", f"the name of the {kind} is {shown(name)}: give it a text")
    elif len(name) > LONGEST_NAME:
        yield Problem(
            "E006",
            f"the name of the {kind} {name!r} has {len(name)} characters; at most {LONGEST_NAME} fit",
        )
    elif not NAME.fullmatch(name):
        usable = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".-") or "a_name"
        yield Problem(
            "E006",
            f"the name of the {kind} {name!r} may have {MARKS} only",
            f"It is searched for, and stands in addresses: call it {usable!r}.",
        )


def shown(value: Any) -> str:
    """Return what a value is, in few words."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        return "a lambda" if name == "<lambda>" else f"the function {name}"
    if isinstance(value, str | int | float | None):
        return repr(value)
    return f"a {type(value).__name__}"
