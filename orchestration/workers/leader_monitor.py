"""Check that leaders are alive, and send due notifications, without leaders or Redis.

Runs beside the alerts' worker. Leaders ring doorbells through Redis, so an alert about either must not
depend on a doorbell.
"""

import logging
import threading

from django.db import connection

from .. import conf
from ..alerting import notifications
from ..cluster import leader_election
from ..cluster.debounce import Debounce
from ..database import sql
from ..supervision import missed

logger = logging.getLogger(__name__)


class LeaderMonitor:
    """Checks every `conf.LEADER_CHECK_INTERVAL_S` seconds in its own thread, until the context ends."""

    def __init__(self) -> None:
        self._absent = {name: Debounce() for name in leader_election.NAMES}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leader-monitor", daemon=True)

    def __enter__(self) -> "LeaderMonitor":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=conf.HEARTBEAT_INTERVAL_S)

    def _run(self) -> None:
        while not self._stop.wait(conf.LEADER_CHECK_INTERVAL_S):
            try:
                self.look()
            except Exception as error:  # any error: the next check follows
                if sql.is_unavailable(error):
                    logger.warning("the leader monitor must wait: %s", sql.first_line(error))
                else:
                    logger.exception("the leader monitor failed")
                connection.close()
        connection.close()

    def look(self) -> None:
        """Check once."""
        for name, absent in self._absent.items():
            missed.look(name, absent)
        while not self._stop.is_set() and notifications.send_due() == conf.NOTIFICATION_BATCH_SIZE:
            pass
