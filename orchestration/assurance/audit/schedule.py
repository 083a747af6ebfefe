"""The housekeeper's part in audits: it rings when one is due, and reports those that do not end."""

from ... import conf
from ...alerting.alerts import AlertReport
from ...cluster.debounce import Debounce
from ...cluster.duty import Duty, Sweep
from ...database import sql
from ...messaging import queues
from ...models.alert import Severity
from ...supervision.conditions import keep
from ..apps import QUEUE
from . import runner

LATE_AUDITS = "audit/late/"

# An audit of a kind began two periods ago, and none that began since has ended: it never starts, ends
# in an error, or takes too long. A whole one counts as one of what has changed.
LATE = """
SELECT k.name, k.every, (SELECT max(started_at) FROM orchestration_auditrun
    WHERE by = ANY(k.by) AND ended_at IS NOT NULL)
FROM orchestration_supervisorpolicy p
CROSS JOIN LATERAL (VALUES ('hourly', p.audit_every, ARRAY['hourly', 'daily']),
    ('daily', p.whole_audit_every, ARRAY['daily'])) AS k (name, every, by)
CROSS JOIN LATERAL (
    SELECT clock_timestamp() - 2 * k.every * interval '1 second' AS at) AS long_ago
WHERE p.audit_every > 0 AND k.every > 0
  AND EXISTS (SELECT FROM orchestration_auditrun WHERE by = ANY(k.by) AND started_at < long_ago.at)
  AND NOT EXISTS (SELECT FROM orchestration_auditrun
    WHERE by = ANY(k.by) AND ended_at IS NOT NULL AND started_at > long_ago.at)
"""


def _ring(_: Sweep) -> None:
    if runner.due():
        queues.try_to_ring(QUEUE)


def report_late(late: Debounce) -> None:
    """Raise an alert for each kind of audit that has not ended for long.

    `late` is kept between calls: what is late must last, as after a pause of all processes it does not.
    """
    details = {
        name: f"None has ended for more than {2 * every / 3600:.1f} hours; the last one that did began "
        + (f"{began:%Y-%m-%d %H:%M} UTC." if began else "before all that are kept.")
        for name, every, began in sql.run(LATE, {})
    }
    reports = [
        AlertReport(
            fingerprint=LATE_AUDITS + name,
            severity=Severity.WARNING,
            title=f"Audit: no {name} run ends",
            detail=f"{details[name]} See the log of the audit's worker.",
        )
        for name in sorted(late.persisting(details, conf.LATE_AUDIT_ALERT_AFTER_S))
    ]
    keep(LATE_AUDITS, reports)


RING_FOR_AUDIT = Duty(name="ring for the audit", run=_ring, every=conf.DUTY_INTERVAL_S)
REPORT_LATE_AUDITS = Duty(
    name="report late audits",
    run=lambda sweep: report_late(sweep.memory.of("late_audits", Debounce)),
    every=conf.DUTY_INTERVAL_S,
)
