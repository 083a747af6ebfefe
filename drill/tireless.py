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

Turn = Callable[[], int]  # gives how many steps it has dealt with so far


def scheduler() -> tuple[Turn, float]:
    """Attend the schedulers' inbox although another does: take replies, claim, send."""
    from orchestration import instance, jobs, queues
    from orchestration.models import Attempt

    me = instance.name(queues.SCHEDULER)

    def turn() -> int:
        jobs.schedule()
        return Attempt.objects.filter(scheduler=me).count()

    return turn, 0


def supervisor() -> tuple[Turn, float]:
    """Sweep without a lease, as a leader would that does not know that it was replaced."""
    from orchestration.leader import Leadership
    from orchestration.supervisor import sweep

    me = Leadership(holder=f"usurper@drill:{os.getpid()}-0", epoch=0)
    swept = 0

    def turn() -> int:
        nonlocal swept
        done = sweep(me)
        swept += done.retried + done.given_up
        return swept

    return turn, 0.05


ROLES = {role.__name__: role for role in (scheduler, supervisor)}


def main(role: str) -> None:
    """Take turns until told to stop."""
    django.setup()
    from django.db import Error, connection

    from orchestration import jobs

    stop = threading.Event()

    def end(*_: Any) -> None:
        stop.set()
        jobs.stop()

    signal.signal(signal.SIGTERM, end)
    turn, pause = ROLES[role]()
    dealt_with = 0
    print("ready", flush=True)
    while not stop.wait(pause):
        try:
            dealt_with = turn()
        except (Error, ExceptionGroup) as error:
            sys.stderr.write(f"{error}\n")
            connection.close()
    print(dealt_with)


if __name__ == "__main__":
    main(sys.argv[1])
