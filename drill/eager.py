"""A scheduler that waits for no doorbell: takes turns until SIGTERM, then prints how many it won.

First it prints a line, when it is about to begin.
"""

import signal
import sys
import threading
from typing import Any

import django


def main() -> None:
    """Claim whatever there is, for all agents, as fast as it goes."""
    django.setup()
    from django.db import DatabaseError, connection

    from orchestration import instance, registry, scheduler
    from orchestration.models import Step

    stop = threading.Event()

    def end(*_: Any) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    me, agents = instance.name(), set(registry.agents)
    won = 0
    print("ready", flush=True)
    while not stop.is_set():
        try:
            scheduler.turn(me, [], agents)
            won = max(won, Step.objects.filter(locked_by=me).count())
        except DatabaseError as error:
            sys.stderr.write(f"{error}\n")
            connection.close()
        stop.wait(0.01)
    sys.stdout.write(str(won))


if __name__ == "__main__":
    main()
