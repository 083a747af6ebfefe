"""Signs of life: each process reports its components every few seconds (`conf.HEARTBEAT`)."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import Error, connection

from . import clock, conf, instance, sql
from .models import Worker
from .models.fields import DatabaseNow

logger = logging.getLogger(__name__)

SEEN = """
INSERT INTO orchestration_worker
    (instance, queue, host, pid, clock_offset, started_at, seen_at, stepped_back_at)
SELECT name, queue, %(host)s, %(pid)s, %(offset)s, clock_timestamp(), clock_timestamp(), to_timestamp(back)
FROM unnest(%(instances)s::text[], %(queues)s::text[], %(back)s::float8[]) AS component (name, queue, back)
ON CONFLICT (instance) DO UPDATE SET seen_at = clock_timestamp(), clock_offset = excluded.clock_offset,
    stepped_back_at = excluded.stepped_back_at
RETURNING extract(epoch FROM clock_timestamp())::float8, set_config('synchronous_commit', 'off', true)
"""  # a sign of life that a crash of the database loses is given again with the next one


StepsBack = Callable[[str], float | None]  # since when a queue's worker has stepped back, if it has


def never(_queue: str) -> None:
    """Say that no worker has stepped back."""


class Presence:
    """Reports what this process serves, from a thread of its own, until it is left.

    That thread alone has a connection for it: many workers need no other while they wait.
    """

    def __init__(self, *queues: str, stepped_back: StepsBack = never) -> None:
        self.queues = queues
        self.stepped_back = stepped_back
        self._seen = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def __enter__(self) -> "Presence":
        self._thread.start()
        while not self._seen.wait(
            conf.HEARTBEAT
        ):  # a process that starts before its database waits
            if not self._thread.is_alive():
                raise RuntimeError("the thread that reports this process has ended")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=conf.HEARTBEAT)

    def _run(self) -> None:
        while not self._stop.is_set():
            if _try_to_report(*self.queues, stepped_back=self.stepped_back):
                self._seen.set()
            self._stop.wait(conf.HEARTBEAT if self._seen.is_set() else conf.HEARTBEAT / 2)
        try:
            Worker.objects.filter(instance__in=map(instance.name, self.queues)).delete()
        except Error as error:
            logger.warning("could not sign off: %s", sql.first_line(error))
        connection.close()


def _try_to_report(*queues: str, stepped_back: StepsBack) -> bool:
    try:
        report(*queues, stepped_back=stepped_back)
    except Error as error:
        logger.warning("cannot report this process: %s", sql.first_line(error))
        connection.close()
        return False
    return True


def report(*queues: str, stepped_back: StepsBack = never) -> None:
    """Report once that this process serves these queues; measure its clock on the way.

    Each is an instance of its own, as if it had a process to itself.
    """
    parameters = {
        "instances": [instance.name(queue) for queue in queues],
        "queues": list(queues),
        "back": [stepped_back(queue) for queue in queues],
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "offset": clock.lead(),
    }
    clock.measure(lambda: float(sql.run(SEEN, parameters)[0][0]))


def alive(since: datetime | None = None) -> list[Worker]:
    """Return the instances that gave a sign of life lately, or those that started after `since`."""
    found = Worker.objects.filter(seen_at__gt=DatabaseNow() - timedelta(seconds=conf.ALIVE))
    return list(found.filter(started_at__gt=since) if since else found)


def silent(seconds: float) -> list[Worker]:
    """Return the instances that gave no sign of life for so long, and did not sign off."""
    return list(Worker.objects.filter(seen_at__lt=DatabaseNow() - timedelta(seconds=seconds)))


def forget_the_dead() -> int:
    """Remove instances that have not been seen for a long while; return how many."""
    long_ago = DatabaseNow() - timedelta(seconds=conf.ALIVE * 6)
    return Worker.objects.filter(seen_at__lt=long_ago).delete()[0]
