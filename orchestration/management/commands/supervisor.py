"""`manage.py supervisor`: watches the state store; of several, one leads."""

import logging
import signal
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand
from django.db import close_old_connections, connection

from orchestration import checks, conf, instance, sql
from orchestration.presence import Presence
from orchestration.supervisor import Watch

logger = logging.getLogger("orchestration.supervisor")


class Command(BaseCommand):
    """Sweeps the state store while it leads; waits to take over while it does not."""

    requires_system_checks = [checks.TAG]
    help = "Find failed and expired steps and have them tried again. Run two or more: one leads."

    def handle(self, *_: Any, **__: Any) -> None:
        """Watch until SIGTERM or SIGINT."""
        stop = threading.Event()
        watch = Watch(instance.name("supervisor"))
        with Presence("supervisor"):
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
            while not stop.is_set():
                pause = conf.HEARTBEAT
                try:
                    close_old_connections()
                    pause = watch.step(time.monotonic())
                except Exception as error:  # whatever one row does, the others need us
                    if sql.is_unavailable(error):
                        logger.warning("the database is away: %s", sql.first_line(error))
                        connection.close()
                    else:
                        logger.exception("the sweep failed")
                stop.wait(pause)
            watch.end()
        instance.end()
