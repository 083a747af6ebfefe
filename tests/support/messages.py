"""Requests to agents, what lies in an inbox, and payloads of an odd shape."""

import time
from uuid import uuid4

from orchestration.messaging import queues
from orchestration.messaging.messages import Request


def request(**fields) -> Request:
    """Return a request; `fields` are what matters about it."""
    known = {
        "step": 1,
        "task": uuid4(),
        "name": "hello",
        "attempt": 1,
        "action": "greet",
        "key": uuid4().hex,
        "reference": "r1",
        "complete_by": time.time() + 60,
        "call_timeout": 30,
        "tries": 1,
        "payload": {"order": "o1"},
        "mode": "do",
        "in_doubt": False,
    }
    return Request(**{**known, **fields})


def left(name: str) -> int:
    """Return how many messages the inbox of an agent has."""
    return queues.connection().llen(queues.inbox(name))


def nested(levels: int) -> list:
    """Return lists in lists, `levels` deep."""
    value: list = []
    for _ in range(levels):
        value = [value]
    return value
