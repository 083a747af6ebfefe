"""Find out whether a housekeeper's sweep has work, and ring doorbells for unserved work.

The first is one statement, so that an idle system costs almost nothing.
"""

from django.conf import settings

from .. import conf, registry
from ..alerting import notifications
from ..applications import push, status_messages
from ..audit import runner
from ..database import sql
from ..messaging import queues
from ..transitions.gates import UNASKED
from ..transitions.holds import SERVICE_CHANGED
from .lost_attempts import LOOKED

NOW = (
    "(SELECT clock_timestamp())"  # evaluated once: a volatile value cannot be searched in an index
)

# A message to one application that was not delivered for a while, or whose retry is due. Reads only the
# first row of each line, by the index status_due: many may wait for their next try.
UNDELIVERED = f"""
((SELECT created_at FROM orchestration_statusmessage
    WHERE reply_to = a.name AND refused_at IS NULL AND send_after IS NULL
    ORDER BY send_after NULLS FIRST, id LIMIT 1) < {NOW} - interval '{conf.RERING_AFTER_S} seconds')
OR ((SELECT send_after FROM orchestration_statusmessage
    WHERE reply_to = a.name AND refused_at IS NULL AND send_after IS NOT NULL
    ORDER BY send_after NULLS FIRST, id LIMIT 1) <= {NOW})
"""  # noqa: S608 - put together from constants

# Each part is the condition of one duty; the first that finds a row ends the statement. Lost doorbells for
# which no row waits are not covered: chores ring for those.
ANYTHING = f"""
SELECT
    -- workers that may be dead, with attempts
    EXISTS (SELECT FROM orchestration_worker
        WHERE seen_at < {NOW} - interval '{conf.WORKER_DEAD_AFTER_S - LOOKED} seconds')
    -- ended holds: hold_uncleared
    OR EXISTS (SELECT FROM orchestration_hold WHERE until IS NOT NULL AND NOT cleared)
    OR EXISTS ({UNASKED})
    OR EXISTS ({SERVICE_CHANGED})
    OR EXISTS (SELECT FROM orchestration_operation WHERE ended_at IS NULL AND state <> 'draft')
    OR EXISTS (SELECT FROM orchestration_incidenttally)
    -- dead letters to be sent back: dead_letter_due
    OR EXISTS (SELECT FROM orchestration_deadletter WHERE retry_at <= {NOW})
    -- old tasks that the last look left
    OR EXISTS (SELECT FROM orchestration_retentionpolicy WHERE more AND keep_days IS NOT NULL
        AND NOT %(archived)s)
    -- doorbells that may have been lost
    OR EXISTS (SELECT FROM unnest(%(receivers)s::text[]) AS a (name) WHERE {UNDELIVERED})
"""  # noqa: S608 - put together from constants


def anything() -> bool:
    """Return whether the housekeeper has work."""
    found = sql.run(
        ANYTHING,
        {"receivers": list(registry.receivers), "archived": bool(settings.ARCHIVE_DIR)},
    )
    return bool(found[0][0])


def ring() -> None:
    """Ring for work that is due and not served: a lost doorbell costs seconds, not a message."""
    waiting = {
        status_messages.queue_of(name) for name, _ in status_messages.waiting(conf.RERING_AFTER_S)
    }
    wanted = {
        **dict.fromkeys(sorted(waiting), True),
        queues.PUSH: push.due(),
        queues.ALERTS: notifications.due(),
        queues.AUDIT: runner.due(),
    }
    for name, is_wanted in wanted.items():
        if is_wanted:
            queues.try_to_ring(name)
