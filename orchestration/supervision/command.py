"""The base of the commands `supervisor` and `housekeeper`: resident, or `--once` for a schedule."""

import logging
import signal
import threading
import time
from argparse import ArgumentParser
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections, connection

from .. import conf
from ..cluster import instance
from ..cluster.heartbeat import Heartbeat
from ..database import migrated, sql
from .watch import Sweeping, Watch

logger = logging.getLogger(__name__)


class Lead(BaseCommand):
    """Sweeps while it leads; waits to take over while it does not."""

    name: ClassVar[str]  # of the lease

    def sweep(self) -> Sweeping:
        """Return the function that does one sweep."""
        raise NotImplementedError

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare `--once`."""
        parser.add_argument(
            "--once",
            action="store_true",
            help="sweep once and end: for cron or a CronJob. Does nothing while another one leads.",
        )

    def handle(self, *, once: bool = False, **_: Any) -> None:
        """Sweep once, or run until SIGTERM or SIGINT."""
        migrated.require("orchestration")
        watch = Watch(instance.name(self.name), name=self.name, sweep=self.sweep())
        if once:
            self._once(watch)
        else:
            self._reside(watch)
        instance.end()

    def _once(self, watch: Watch) -> None:
        try:
            led = watch.once()
        except Exception as error:  # one sentence, for cron's e-mail
            watch.end()
            raise CommandError(f"the sweep failed: {_sentence(error)}") from error
        if not led:
            logger.info("another %s leads: nothing was done", self.name)

    def _reside(self, watch: Watch) -> None:
        stop = threading.Event()
        with Heartbeat(self.name):
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
            while not stop.is_set():
                stop.wait(_step(watch))
            watch.end()


def _step(watch: Watch) -> float:
    """Take one step of a watch; log its errors, and return the seconds to wait."""
    try:
        close_old_connections()
        return watch.step(time.monotonic())
    except Exception as error:
        if sql.is_unavailable(error):
            logger.warning("the database is away: %s", sql.first_line(error))
            connection.close()
        else:
            logger.exception("the sweep failed")
    return conf.HEARTBEAT_INTERVAL_S


def _sentence(error: Exception) -> str:
    if isinstance(error, ExceptionGroup):
        return "; ".join(map(_sentence, error.exceptions))
    return f"{type(error).__name__}: {sql.first_line(error)}"
