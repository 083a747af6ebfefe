"""Remove row locks from statements, to show that a test needs them."""

from functools import wraps
from importlib import import_module

# module, and a function that returns a statement
CLAIM_LOCKS = (("gates", "locking"), ("backlog", "in_turn"))
TASK_LOCKS = (("locked_task", "locking"),)
LOCK, SKIP = " FOR NO KEY UPDATE", " SKIP LOCKED"


def unlock(*statements: tuple[str, str], put=setattr) -> None:
    """Remove the locks of these statements in this process; `put` sets the attribute."""
    for name, function in statements:
        module = import_module(f"orchestration.transitions.{name}")
        put(module, function, _without_lock(getattr(module, function)))


def _without_lock(statement):
    @wraps(statement)
    def unlocked(*given, **named):
        text = statement(*given, **named)
        assert LOCK in text
        return text.replace(SKIP, "").replace(LOCK, "")

    return unlocked
