"""How many requests an agent may be sent now: a pure decision (P16)."""


def free_places(window: int, in_flight: int) -> int:
    """Return how many more requests may go to an agent that has `in_flight` at work already."""
    return max(0, window - in_flight)
