"""Beside the alerts' worker: looks for leaders, and sends notices although no doorbell rings.

Doorbells are rung by the leaders, through Redis; an alert about either must not depend on them.
"""

import logging
import threading

from django.db import connection

from . import conf, leader, notices, sql
from .lasting import Lasting
from .leading import missed

logger = logging.getLogger(__name__)


class Lookout:
    """Looks every `conf.LOOKOUT` seconds, from a thread of its own, until it is left."""

    def __init__(self) -> None:
        self._absent = {name: Lasting() for name in leader.NAMES}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lookout", daemon=True)

    def __enter__(self) -> "Lookout":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=conf.HEARTBEAT)

    def _run(self) -> None:
        while not self._stop.wait(conf.LOOKOUT):
            try:
                self.look()
            except Exception as error:  # it looks on, whatever it met with
                if sql.is_unavailable(error):
                    logger.warning("the lookout must wait: %s", sql.first_line(error))
                else:
                    logger.exception("the lookout failed")
                connection.close()
        connection.close()

    def look(self) -> None:
        """Look once."""
        for name, absent in self._absent.items():
            missed.look(name, absent)
        while not self._stop.is_set() and notices.send_due() == conf.NOTICES:
            pass
