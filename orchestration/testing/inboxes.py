"""The queues' inboxes in memory: a test needs no Redis."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from ..messaging import queues


class Inboxes:
    """Messages by queue. Its methods stand for the functions of `messaging.queues` of the same names."""

    def __init__(self) -> None:
        self._messages: dict[str, list[bytes]] = defaultdict(list)

    def ring_all(self, messages: Mapping[str, Sequence[bytes]]) -> None:
        """Add messages to inboxes; a doorbell alone is not needed, as each round looks at everything."""
        for name, added in messages.items():
            self._messages[name] += added

    def take(self, name: str, limit: int, wait: float = 0) -> list[bytes]:  # noqa: ARG002 - its interface
        """Take the first messages of an inbox."""
        inbox = self._messages[name]
        self._messages[name] = inbox[limit:]
        return inbox[:limit]

    def waiting(self, names: Sequence[str]) -> list[str]:
        """Return the queues whose inbox is not empty."""
        return [name for name in names if self._messages[name]]

    def oldest(self, name: str) -> tuple[bytes | None, bool]:
        """Return the first message of an inbox; nothing was lost since the last call."""
        return next(iter(self._messages[name]), None), True

    def held_by(self, worker: str) -> dict[int, int]:  # noqa: ARG002 - its interface
        """Return the requests that a worker holds: in a test it performs them at once."""
        return {}


@contextmanager
def in_memory() -> Iterator[Inboxes]:
    """Have the engine use inboxes in memory in this block."""
    inboxes = Inboxes()
    with ExitStack() as stack:
        for name in ("ring_all", "take", "waiting", "oldest", "held_by"):
            stack.enter_context(patch.object(queues, name, getattr(inboxes, name)))
        yield inboxes
