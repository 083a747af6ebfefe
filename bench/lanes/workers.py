"""Keeps a worker of each queue running: `python -m bench.lanes.workers QUEUE…`.

As in a stack, a worker is a fork with all modules loaded, and is started again at once when it ends.
"""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Sequence

import django
from django.core.management import call_command, get_commands, load_command_class

PDEATHSIG = 1  # of prctl(2)


def main(queues: Sequence[str]) -> None:
    """Keep all workers running until SIGTERM, which each of them receives too."""
    django.setup()
    load_command_class(get_commands()["work"], "work")
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    running = {begin(queue): queue for queue in queues}
    while True:
        pid, _ = os.wait()
        if queue := running.pop(pid, ""):
            running[begin(queue)] = queue


def begin(queue: str) -> int:
    """Start a process that serves a queue and gets SIGTERM when this one ends; return its id."""
    manager = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGTERM)
        if os.getppid() == manager:  # it may have ended before
            os.environ["PROCESS"] = queue
            call_command("work", queue, skip_checks=True)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
