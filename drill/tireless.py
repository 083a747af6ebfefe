"""A process that waits for nobody's leave. Run in a stack's own environment: `python -m drill.tireless …`.

It prints a line when it is about to begin, works until SIGTERM, then prints how many steps it dealt
with.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import django

Turn = Callable[[], int]


def scheduler() -> tuple[Turn, float]:
    """Claim whatever there is, for all agents, without a doorbell; count the most held at once."""
    from orchestration import instance, registry, scheduler
    from orchestration.models import Step

    me, agents = instance.name(), set(registry.agents)
    most = 0

    def turn() -> int:
        nonlocal most
        before = most
        scheduler.turn(me, [], agents)
        most = max(most, Step.objects.filter(locked_by=me).count())
        return most - before

    return turn, 0.01


def supervisor() -> tuple[Turn, float]:
    """Sweep without a lease, as a leader would that does not know that it was replaced."""
    from orchestration.leader import Leadership
    from orchestration.supervisor import sweep

    me = Leadership(holder=f"usurper@drill:{os.getpid()}-0", epoch=0)

    def turn() -> int:
        done = sweep(me)
        return done.retried + done.given_up

    return turn, 0.05


ROLES = {role.__name__: role for role in (scheduler, supervisor)}


def main(role: str) -> None:
    """Take turns until told to stop."""
    django.setup()
    from django.db import DatabaseError, connection

    stop = threading.Event()

    def end(*_: Any) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    turn, pause = ROLES[role]()
    dealt_with = 0
    print("ready", flush=True)
    while not stop.wait(pause):
        try:
            dealt_with += turn()
        except DatabaseError as error:
            sys.stderr.write(f"{error}\n")
            connection.close()
    print(dealt_with)


if __name__ == "__main__":
    main(sys.argv[1])
