"""The idempotency keys of steps."""


def step_key(task: object, name: str, direction: str, generation: int) -> str:
    """Return the key that a remote service recognises a repeat by."""
    return f"{task}:{name}:{direction}:{generation}"
