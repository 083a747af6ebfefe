"""Several people who do something at the same moment."""

import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

Name = TypeVar("Name", bound=Hashable)
Answer = TypeVar("Answer")


def at_once(acts: Mapping[Name, Callable[[], Answer]]) -> dict[Name, Answer]:
    """Begin all acts together, each with a connection of its own; return what each came to."""
    together = threading.Barrier(len(acts))

    def run(act: Callable[[], Answer]) -> Answer:
        together.wait()
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        begun = {name: pool.submit(run, act) for name, act in acts.items()}
    return {name: one.result() for name, one in begun.items()}
