"""Send status messages as signed webhooks, to the applications whose delivery is push (P27).

Delivery is at least once, by an outbox, and in order per task: the next message of a task is sent when
the one before has arrived or was given up. A failing receiver is paused, longer each time, and then
tried with one message. Other receivers' messages do not wait for it.
"""

import asyncio
import json
import logging
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from .. import conf
from ..alerting import webhooks
from ..alerting.failures import fail
from ..database import clock, leases, sql
from ..database.lane import CLOCK, LOCK, Chance
from ..decisions.backoff import backoff
from ..models import Application, StatusMessage
from ..models.inbox import PUSHES
from ..tracing import switch
from . import status_messages

logger = logging.getLogger(__name__)

# One message of a task at a time: an earlier undelivered one, claimed or not, comes first.
DUE = f"""
FROM orchestration_application a CROSS JOIN LATERAL (
    SELECT m.id FROM orchestration_statusmessage m
    WHERE m.reply_to = a.name AND {PUSHES.where(PUSHES.due)}
      AND NOT EXISTS (
        SELECT 1 FROM orchestration_statusmessage e
        WHERE e.task_id = m.task_id AND e.reply_to = m.reply_to AND e.number < m.number
          AND {PUSHES.where(PUSHES.open, "e")})
    ORDER BY m.id LIMIT CASE WHEN a.push_failures > 0 THEN 1 ELSE %(limit)s END {{lock}}
) AS due
WHERE a.delivery = 'push' AND a.active
  AND (a.push_after IS NULL OR a.push_after <= {CLOCK})
"""  # noqa: S608 - put together from constants

# Each application's first message is sent before any application's second.
FIRST_OF_EACH = f"""
WITH ready AS MATERIALIZED (SELECT due.id, a.id AS application {DUE.format(lock=LOCK)})
SELECT id FROM ready
ORDER BY row_number() OVER (PARTITION BY application ORDER BY id), id LIMIT %(in_all)s
"""  # noqa: S608 - put together from constants

PAUSE = """
UPDATE orchestration_application SET push_failures = push_failures + 1, push_error = %(error)s,
    push_after = clock_timestamp() + %(wait)s * interval '1 second'
WHERE id = %(id)s
"""


def due() -> bool:
    """Whether a message is due."""
    return bool(sql.run(f"SELECT EXISTS (SELECT {DUE.format(lock='')})", {"limit": 1})[0][0])


def send_due(limit: int = conf.PUSHES_PER_APPLICATION, chance: Chance = random.random) -> int:
    """Send up to `limit` due messages per application; return how many were tried.

    Must not run inside a transaction: other processes must see the claim.
    """
    claimed = leases.claim(PUSHES, FIRST_OF_EACH, limit=limit, in_all=conf.PUSHES_IN_TOTAL)
    rows = StatusMessage.objects.filter(id__in=claimed).order_by("id")
    batches: dict[str, list[StatusMessage]] = defaultdict(list)
    for row in rows:
        batches[row.reply_to].append(row)
    if batches:
        receivers = Application.objects.in_bulk(list(batches), field_name="name")
        _send({receivers[name]: batch for name, batch in batches.items()}, chance)
    return len(claimed)


def _send(batches: Mapping[Application, Sequence[StatusMessage]], chance: Chance) -> None:
    """POST all messages at once, and record the results."""
    posts = [
        webhooks.Webhook(
            id=leases.message_id(PUSHES, row),
            url=receiver.url,
            secrets=webhooks.signing_secrets(receiver),
            body=json.dumps(status_messages.as_json(row), separators=(",", ":")).encode(),
        )
        for receiver, batch in batches.items()
        for row in batch
    ]
    problems = iter(asyncio.run(webhooks.post(posts, int(clock.now()))))
    results = {
        receiver: [(row, next(problems)) for row in batch] for receiver, batch in batches.items()
    }
    # at once: what has arrived need not be sent again
    arrived = [row for tried in results.values() for row, problem in tried if not problem]
    StatusMessage.objects.filter(id__in=[row.id for row in arrived]).delete()
    if switch.ON:
        status_messages.trace(arrived)
    for receiver, tried in results.items():
        _record(receiver, tried, chance)


def _record(
    receiver: Application,
    tried: Sequence[tuple[StatusMessage, str]],
    chance: Chance,
) -> None:
    failed = [(row, problem) for row, problem in tried if problem]
    for row, problem in failed:
        fail(PUSHES, [row.id], problem, tries=row.tries, chance=chance)
    if len(failed) == len(tried):  # not the message, but the receiver is to blame
        pause = backoff(PUSHES.wait_s, PUSHES.wait_cap_s, receiver.push_failures + 1, chance())
        problem = failed[-1][1]
        sql.run(PAUSE, {"id": str(receiver.id), "error": problem, "wait": pause})
        logger.warning("%s takes no messages; again in %.0f s: %s", receiver, pause, problem)
    elif receiver.push_failures:
        Application.objects.filter(id=receiver.id).update(
            push_failures=0, push_after=None, push_error=""
        )
        logger.info("%s takes messages again", receiver)
