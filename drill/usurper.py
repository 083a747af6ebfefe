"""A supervisor that needs no lease: sweeps until SIGTERM, then prints how many steps it dealt with."""

import os
import signal
import sys
import threading
from typing import Any

import django


def main() -> None:
    """Sweep, as a leader would that does not know that it was replaced."""
    django.setup()
    from django.db import DatabaseError, connection

    from orchestration.leader import Leadership
    from orchestration.supervisor import sweep

    stop = threading.Event()

    def end(*_: Any) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    me = Leadership(holder=f"usurper@drill:{os.getpid()}-0", epoch=0)
    dealt_with = 0
    while not stop.wait(0.05):
        try:
            done = sweep(me)
            dealt_with += done.retried + done.given_up
        except DatabaseError as error:
            sys.stderr.write(f"{error}\n")
            connection.close()
    sys.stdout.write(str(dealt_with))


if __name__ == "__main__":
    main()
