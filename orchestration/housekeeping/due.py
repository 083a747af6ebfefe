"""What is due beside the tasks: whether a housekeeper's sweep has anything to do, and doorbells.

The first is one statement, so that an idle system costs next to nothing.
"""

from .. import audit, conf, notices, push, queues, registry, sql, status
from ..transitions.gates import UNASKED
from ..transitions.holds import SERVICE_CHANGED
from .lost import LOOKED

NOW = "(SELECT clock_timestamp())"  # once a statement: an index cannot be searched for what changes

# Was written to one application and not delivered for a while, or failed and is to be tried again, by
# status_due. Only the first of each line is looked at: many may wait for their next try.
UNDELIVERED = f"""
((SELECT created_at FROM orchestration_statusmessage
    WHERE reply_to = a.name AND refused_at IS NULL AND send_after IS NULL
    ORDER BY send_after NULLS FIRST, id LIMIT 1) < {NOW} - interval '{conf.UNSERVED} seconds')
OR ((SELECT send_after FROM orchestration_statusmessage
    WHERE reply_to = a.name AND refused_at IS NULL AND send_after IS NOT NULL
    ORDER BY send_after NULLS FIRST, id LIMIT 1) <= {NOW})
"""  # noqa: S608 - put together from constants

# Each part is what a duty of the sweep looks for; the first that finds a row ends the statement.
# Not asked for here are lost doorbells of what nothing waits for: chores ring for those.
ANYTHING = f"""
SELECT
    -- workers that may be dead, with attempts
    EXISTS (SELECT FROM orchestration_worker
        WHERE seen_at < {NOW} - interval '{conf.ALIVE - LOOKED} seconds')
    -- ended holds: hold_uncleared
    OR EXISTS (SELECT FROM orchestration_hold WHERE until IS NOT NULL AND NOT cleared)
    OR EXISTS ({UNASKED})
    OR EXISTS ({SERVICE_CHANGED})
    OR EXISTS (SELECT FROM orchestration_operation WHERE ended_at IS NULL AND state <> 'draft')
    OR EXISTS (SELECT FROM orchestration_incidenttally)
    -- dead letters to be sent back: dead_letter_due
    OR EXISTS (SELECT FROM orchestration_deadletter WHERE retry_at <= {NOW})
    -- doorbells that may have been lost
    OR EXISTS (SELECT FROM unnest(%(receivers)s::text[]) AS a (name) WHERE {UNDELIVERED})
"""  # noqa: S608 - put together from constants


def anything() -> bool:
    """Return whether anything is due beside the tasks."""
    found = sql.run(ANYTHING, {"receivers": list(registry.receivers)})
    return bool(found[0][0])


def ring() -> None:
    """Ring for what is due and not served: a lost doorbell costs seconds, not a message."""
    waiting = {queues.of_application(name) for name, _ in status.waiting(conf.UNSERVED)}
    wanted = {
        **dict.fromkeys(sorted(waiting), True),
        queues.PUSH: push.due(),
        queues.ALERTS: notices.due(),
        queues.AUDIT: audit.due(),
    }
    for name, is_wanted in wanted.items():
        if is_wanted:
            queues.try_to_ring(name)
