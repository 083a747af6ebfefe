"""Takes locks away, to show what they are for."""

from functools import wraps
from importlib import import_module

# module, and a function that returns a statement
CLAIM_LOCKS = (("gates", "locking"), ("backlog", "in_turn"))
TASK_LOCKS = (("changes", "locking"),)
LOCK, SKIP = " FOR NO KEY UPDATE", " SKIP LOCKED"


def unlock(*statements: tuple[str, str], put=setattr) -> None:
    """Have this process read as if nobody else did; `put` is what writes into a module."""
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
