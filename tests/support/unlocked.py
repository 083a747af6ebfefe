"""Remove row locks from statements, to show that a test needs them."""

import re
from functools import wraps
from importlib import import_module

# module, and a statement, or a function that returns one
CLAIM_LOCKS = (("gates", "LOCK"), ("backlog", "in_turn"))
TASK_LOCKS = (("locked_task", "locking"),)
LOCK, SKIP = "FOR NO KEY UPDATE", " SKIP LOCKED"


def unlock(*statements: tuple[str, str], put=setattr) -> None:
    """Remove the locks of these statements in this process; `put` sets the attribute."""
    for name, attribute in statements:
        module = import_module(f"orchestration.transitions.{name}")
        statement = getattr(module, attribute)
        put(module, attribute, (_function if callable(statement) else _without_lock)(statement))


def unguard() -> None:
    """Have this process claim steps without a look at the version they have by now."""
    module = import_module("orchestration.transitions.claim")
    text, guards = re.subn(
        r"WHERE s\.id = r\.id\s+AND .*?(?=RETURNING)",
        "WHERE s.id = r.id\n",
        module.DISPATCHED.statement,
        flags=re.DOTALL,
    )
    assert guards == 1
    module.DISPATCHED.statement = text


def _function(statement):
    @wraps(statement)
    def unlocked(*positional, **named):
        return _without_lock(statement(*positional, **named))

    return unlocked


def _without_lock(text):
    assert LOCK in text
    return text.replace(SKIP, "").replace(LOCK, "")
