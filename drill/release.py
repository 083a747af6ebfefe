"""Another release beside a stack's own: loaded once, and forked for each of its processes."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from drill.forks import Fork, Forks
from drill.process import end_all
from drill.process_names import processes_named
from drill.stack import Stack


class Release:
    """The project in another environment than the stack's own."""

    def __init__(self, stack: Stack, **environment: str) -> None:
        self._stack = stack
        self._forks = Forks(stack.inside(**environment), stack.log)

    def __enter__(self) -> "Release":
        return self

    def __exit__(self, *_: object) -> None:
        self._forks.end()

    @contextmanager
    def in_place_of(self, name: str) -> Iterator[Sequence[Fork]]:
        """Run the processes of a name as forks, instead of the stack's own."""
        with self._stack.stopped(name), self._stack.log.open("ab") as log:
            begun = [
                self._forks.start(
                    self._stack.command_of(part)[1:], output=log, errors=log, PROCESS=f"{part}*"
                )
                for part in processes_named(name)
            ]
            try:
                yield begun
            finally:
                end_all(begun, signal.SIGTERM, 20)
