"""Check that leaders are alive, and send due notifications, without leaders or Redis.

Runs beside the alerts' worker. Leaders ring doorbells through Redis, so an alert about either must not
depend on a doorbell.
"""

import logging
import threading
from collections.abc import Mapping
from datetime import timedelta

from django.db import connection

from .. import conf, policies
from ..alerting import alerts, notifications
from ..alerting.alerts import AlertReport
from ..cluster import leader_election
from ..cluster.debounce import Debounce
from ..database import sql
from ..models.alert import Severity
from ..supervision import conditions

logger = logging.getLogger(__name__)

# With scheduled sweeps, a leader is missing only when the next sweep is late. A lease that ends later than
# any lease can shows that the clock went back.
LED = f"""
SELECT expires_at > clock_timestamp() AND expires_at < clock_timestamp() + %(longest)s
        OR coalesce(next_sweep_due > clock_timestamp(), false),
    {leader_election.SWEPT_LATELY}
FROM orchestration_lease WHERE name = %(name)s
"""  # noqa: S608 - put together from constants

# What follows if none leads, and if the leader does not sweep
EFFECTS: Mapping[str, tuple[str, str]] = {
    leader_election.SUPERVISOR: (
        "What fails is neither retried nor reported until one is started.",
        "What fails may be neither retried nor reported. Its log says why.",
    ),
    leader_election.HOUSEKEEPER: (
        (
            "Bulk operations, incidents, figures and alerts about the engine stand still until it starts. "
            "Tasks go on, but for those of holds that have ended."
        ),
        "Bulk operations, incidents, figures and alerts may stand still. Its log says why.",
    ),
}


def look(name: str, absent: Debounce, *, patience: float = conf.LEASE_S) -> bool:
    """Raise or close the alerts about a missing leader or sweep; return whether a process leads.

    An expired lease or a late sweep must last for `patience` more seconds before its alert.
    """
    longest, late = timedelta(seconds=2 * conf.LEASE_S), timedelta(seconds=policies.patience())
    ((led, swept),) = sql.run(LED, {"name": name, "longest": longest, "late": late}) or ((0, 0),)
    no_leader, not_swept = reports = _reports(name)
    present = [no_leader] if not led else [not_swept] if not swept else []
    lasting = absent.persisting([report.fingerprint for report in present], patience)
    for report in reports:
        if report not in present:
            alerts.close(report.fingerprint)
        elif report.fingerprint in lasting:
            conditions.keep(report.fingerprint, [report])
    return bool(led)


def _reports(name: str) -> tuple[AlertReport, AlertReport]:
    """Return the reports that no process leads, and that the leader finishes no sweep."""
    without_leader, without_sweep = EFFECTS[name]
    return (
        AlertReport(
            fingerprint=f"{conditions.PREFIX}{name}/no_leader",
            severity=Severity.CRITICAL,
            title=f"No {name} leads",
            detail=without_leader,
        ),
        AlertReport(
            fingerprint=f"{conditions.PREFIX}{name}/not_swept",
            severity=Severity.CRITICAL,
            title=f"The {name} that leads does not finish a sweep",
            detail=without_sweep,
        ),
    )


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
            except Exception as error:  # noqa: BLE001 - the next check follows
                sql.log_end(logger, "the leader monitor", error)
                connection.close()
        connection.close()

    def look(self) -> None:
        """Check once."""
        for name, absent in self._absent.items():
            look(name, absent)
        while not self._stop.is_set() and notifications.send_due() == conf.NOTIFICATION_BATCH_SIZE:
            pass
