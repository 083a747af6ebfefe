"""The references of children: each goes on from that of its parent, so it says who is above it."""

import re

# What follows the reference of the parent: step, position and, after an undo, which child of that it is.
# Python and Postgres read it alike.
BELOW = r"/[^/]+/[0-9]+([.][0-9]+)?"
_CHILD = re.compile(rf"(?P<parent>.+){BELOW}", re.DOTALL)


def of_child(parent: str, step: str, position: int, again: int) -> str:
    """Return the reference of a child; `again` is how many of its step and position were undone before."""
    reference = f"{parent}/{step}/{position}"
    return f"{reference}.{again + 1}" if again else reference


def above(reference: str) -> list[str]:
    """Return the references of the tasks whose child this may be, the topmost first; none for another."""
    parents: list[str] = []
    while child := _CHILD.fullmatch(reference):
        reference = child["parent"]
        parents.insert(0, reference)
    return parents
