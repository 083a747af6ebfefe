"""Takes locks away, to show what they are for."""

from importlib import import_module

# module and constant of a statement, and the lock that it takes
CLAIM_LOCKS = (
    ("gates", "LOCK", "FOR NO KEY UPDATE OF g"),
    ("backlog", "DUE", "FOR NO KEY UPDATE OF t, s SKIP LOCKED"),
)
TASK_LOCKS = (("changes", "LOCK", "FOR NO KEY UPDATE"), ("changes", "SKIP", "SKIP LOCKED"))


def unlock(*statements: tuple[str, str, str], put=setattr) -> None:
    """Have this process read as if nobody else did; `put` is what writes into a module."""
    for name, constant, lock in statements:
        module = import_module(f"orchestration.transitions.{name}")
        text = getattr(module, constant)
        assert lock in text
        put(module, constant, text.replace(lock, ""))
