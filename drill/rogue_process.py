"""A scheduler that ignores doorbells, or a supervisor that ignores the lease.

Run in a stack's environment: `python -m drill.rogue_process scheduler|supervisor`. It prints "ready",
works until SIGTERM, then prints the number of steps that it handled.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import django

Turn = Callable[[], int]  # returns the number of steps handled so far


def scheduler() -> tuple[Turn, float]:
    """Serve the schedulers' inbox beside another scheduler: record replies, claim, send."""
    from orchestration.cluster import instance
    from orchestration.messaging import queues
    from orchestration.models import Attempt
    from orchestration.workers import jobs

    me = instance.name(queues.SCHEDULER)

    def turn() -> int:
        jobs.schedule()
        return Attempt.objects.filter(scheduler=me).count()

    return turn, 0


def supervisor() -> tuple[Turn, float]:
    """Sweep without a lease, like a leader that has not noticed its replacement."""
    from orchestration.cluster.leader_election import Leadership
    from orchestration.supervisor import sweep

    usurper = Leadership(holder=f"usurper@drill:{os.getpid()}-0", epoch=0)
    swept = 0

    def turn() -> int:
        nonlocal swept
        done = sweep(usurper)
        swept += done["retried"] + done["given up"]
        return swept

    return turn, 0.05


ROLES = {role.__name__: role for role in (scheduler, supervisor)}


def main(role: str) -> None:
    """Take turns until SIGTERM."""
    django.setup()
    from django.db import Error, connection

    from orchestration.workers import jobs

    stop = threading.Event()

    def end(*_: Any) -> None:
        stop.set()
        jobs.stop()

    signal.signal(signal.SIGTERM, end)
    turn, pause = ROLES[role]()
    handled = 0
    print("ready", flush=True)
    while not stop.wait(pause):
        try:
            handled = turn()
        except (Error, ExceptionGroup) as error:
            sys.stderr.write(f"{error}\n")
            connection.close()
    print(handled)


if __name__ == "__main__":
    main(sys.argv[1])
