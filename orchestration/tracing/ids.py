"""The ids of traces and spans, derived from what every process knows: none is stored or sent along.

So processes of two releases agree, whichever of them traces, and a retry after years continues the trace.
Ids are digests, not the reference itself: samplers read the last 64 bits as a number drawn by lot, and in
a UUID two of these are fixed.
"""

from hashlib import blake2b

from ..payloads import references


def trace_of(reference: str) -> int:
    """Return the id of a task's trace: that of its parent, if it is a child.

    Tasks of several workflows under one reference share it.
    """
    return _digest(next(iter(references.above(reference)), reference), 16)


def trace_id(reference: str) -> str:
    """Return the id of a task's trace as tools show it: 32 hexadecimal digits."""
    return f"{trace_of(reference):032x}"


def task_span(workflow: str, reference: str) -> int:
    """Return the id of the span of a whole task, the root of its trace."""
    return _digest(f"task {workflow} {reference}", 8)


def attempt_span(step: int, attempt: int) -> int:
    """Return the id of the span of an attempt, from its claim to its recorded reply."""
    return _digest(f"attempt {step} {attempt}", 8)


def work_span(step: int, attempt: int) -> int:
    """Return the id of the span of an agent's work for an attempt."""
    return _digest(f"work {step} {attempt}", 8)


def _digest(text: str, size: int) -> int:
    """Return a number other than 0, which the format keeps for "none"."""
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest()) or 1
