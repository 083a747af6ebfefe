"""Check that scheduled audits end."""

from ..database import sql

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


def late() -> dict[str, str]:
    """Return the kinds of audit that have not ended for two periods, with a sentence each."""
    return {
        name: f"None has ended for more than {2 * every / 3600:.1f} hours; the last one that did began "
        + (f"{began:%Y-%m-%d %H:%M} UTC." if began else "before all that are kept.")
        for name, every, began in sql.run(LATE, {})
    }
