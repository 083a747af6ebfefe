"""Conditions of the engine: each is an alert for as long as it lasts. Its cause begins with `PREFIX`."""

from collections.abc import Collection, Iterable

from .. import conf
from ..alerting import alerts
from ..alerting.alerts import AlertReport
from ..cluster import leader_election
from ..cluster.leader_election import Jump
from ..database import sql
from ..models import Alert
from ..models.alert import Severity

PREFIX = "system/"
JUMPED = f"{PREFIX}clock_jumped"
# each leader manages its own
OF_LEADERS = tuple(f"{PREFIX}{name}/" for name in leader_election.NAMES)
SEEN_EVERY = 10.0  # seconds between two updates of an alert's `last_seen`

SEEN = """
UPDATE orchestration_alert SET last_seen = clock_timestamp() WHERE id IN (
    SELECT id FROM orchestration_alert WHERE closed_at IS NULL
        AND fingerprint = ANY(%(fingerprints)s)
        AND last_seen < (SELECT clock_timestamp()) - %(every)s * interval '1 second'
    FOR NO KEY UPDATE SKIP LOCKED)
"""


def jumped(jump: Jump) -> AlertReport:
    """Return the report on a jump of the database's clock."""
    direction = "forward" if jump.seconds > 0 else "back"
    small = abs(jump.seconds) <= conf.CLOCK_JUMP_S
    moved = "stay as they are" if small else "were moved accordingly"
    return AlertReport(
        fingerprint=JUMPED,
        severity=Severity.WARNING if small else Severity.CRITICAL,
        title=f"The database's clock jumped {direction} by {abs(jump.seconds):.0f} s",
        detail=f"The last jump: {jump.seconds:+.0f} s. Deadlines and waits {moved}, and no "
        "task was undone. Check what sets the clock of the database's host.",
    )


def keep(prefix: str, reports: Iterable[AlertReport], *, but: Collection[str] = ()) -> None:
    """Open and close alerts so that exactly these are open below `prefix`, except those below `but`."""
    by_cause = {report.fingerprint: report for report in reports}
    opened = Alert.objects.filter(closed_at=None, fingerprint__startswith=prefix)
    are_open = {
        fingerprint
        for fingerprint in opened.values_list("fingerprint", flat=True)
        if not fingerprint.startswith(tuple(but))
    }
    if begun := sorted(by_cause.keys() - are_open):
        alerts.raise_all([by_cause[fingerprint] for fingerprint in begun])
    if lasting := sorted(by_cause.keys() & are_open):
        # not raised again: an alert counts events, and this event lasts
        sql.run(SEEN, {"fingerprints": lasting, "every": SEEN_EVERY})
    for fingerprint in sorted(are_open - by_cause.keys()):
        alerts.close(fingerprint, wait=False)
