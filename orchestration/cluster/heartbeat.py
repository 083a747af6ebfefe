"""Heartbeats: each process reports its components every `conf.HEARTBEAT_INTERVAL_S` seconds."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import Error, connection

from .. import conf
from ..database import clock, sql
from ..models import Worker
from ..models.fields import DatabaseNow
from . import instance

logger = logging.getLogger(__name__)

SEEN = """
INSERT INTO orchestration_worker
    (instance, queue, host, pid, clock_offset, started_at, seen_at, stepped_back_at)
SELECT name, queue, %(host)s, %(pid)s, %(offset)s, clock_timestamp(), clock_timestamp(), to_timestamp(back)
FROM unnest(%(instances)s::text[], %(queues)s::text[], %(back)s::float8[]) AS component (name, queue, back)
ON CONFLICT (instance) DO UPDATE SET seen_at = clock_timestamp(), clock_offset = excluded.clock_offset,
    stepped_back_at = excluded.stepped_back_at
RETURNING extract(epoch FROM clock_timestamp())::float8, set_config('synchronous_commit', 'off', true)
"""  # a heartbeat may be lost in a crash of the database: the next one follows


WEB = "web"  # what a web server's process reports instead of a queue
StepsBack = Callable[[str], float | None]  # queue → when its worker stepped back, if it has


def never(_queue: str) -> None:
    """Return None: no worker has stepped back."""


def always(_queue: str) -> bool:
    """Return True: the thread of a queue goes on."""
    return True


class Heartbeat:
    """Reports the queues of this process from its own thread, until the context ends.

    Only that thread needs a database connection while the workers wait. A queue whose own thread is not
    `alive` is left out: it counts as silent, as if its process had ended.
    """

    def __init__(
        self,
        *queues: str,
        stepped_back: StepsBack = never,
        alive: Callable[[str], bool] = always,
    ) -> None:
        self.queues = queues
        self.stepped_back = stepped_back
        self.alive = alive
        self._seen = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def begin(self) -> None:
        """Report without waiting for the first time: a web server answers before its database does."""
        self._thread.start()

    def end(self) -> None:
        """Report no more, and remove what was reported."""
        self.__exit__()

    def __enter__(self) -> "Heartbeat":
        try:
            self._thread.start()
            self._wait_until_seen()
        except BaseException:  # a signal to end: what was reported meanwhile must not stay
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.is_alive():  # one that a signal kept from its start has reported nothing
            self._thread.join(timeout=conf.HEARTBEAT_INTERVAL_S)

    def _wait_until_seen(self) -> None:
        """Wait for the first report: a process that starts before its database waits here."""
        while not self._seen.wait(conf.HEARTBEAT_INTERVAL_S):
            if not self._thread.is_alive():
                raise RuntimeError("the thread that reports this process has ended")

    def _run(self) -> None:
        while not self._stop.is_set():
            going_on = filter(self.alive, self.queues)
            if _try_to_report(*going_on, stepped_back=self.stepped_back):
                self._seen.set()
            self._stop.wait(
                conf.HEARTBEAT_INTERVAL_S if self._seen.is_set() else conf.HEARTBEAT_INTERVAL_S / 2
            )
        try:
            Worker.objects.filter(instance__in=map(instance.name, self.queues)).delete()
        except Error as error:
            logger.warning("cannot delete the worker's row: %s", sql.first_line(error))
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
    """Report once that this process serves these queues, and measure its clock.

    Each queue is an instance of its own, as if it had its own process.
    """
    parameters = {
        "instances": [instance.name(queue) for queue in queues],
        "queues": list(queues),
        "back": [stepped_back(queue) for queue in queues],
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "offset": clock.lead(),
    }
    if queues:
        clock.measure(lambda: float(sql.run(SEEN, parameters)[0][0]))


def alive(since: datetime | None = None) -> list[Worker]:
    """Return the instances with a recent heartbeat; with `since`, only those that started after it."""
    workers = Worker.objects.filter(
        seen_at__gt=DatabaseNow() - timedelta(seconds=conf.WORKER_DEAD_AFTER_S)
    )
    return list(workers.filter(started_at__gt=since) if since else workers)


def silent(seconds: float) -> list[Worker]:
    """Return the instances without a heartbeat for `seconds` that did not end in an orderly way."""
    return list(Worker.objects.filter(seen_at__lt=DatabaseNow() - timedelta(seconds=seconds)))


def delete_dead_workers() -> int:
    """Delete instances that have long been dead; return how many."""
    long_ago = DatabaseNow() - timedelta(seconds=conf.WORKER_DEAD_AFTER_S * 6)
    return Worker.objects.filter(seen_at__lt=long_ago).delete()[0]
