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

from django.db import transaction

from .. import conf
from ..alerting import outbox, webhooks
from ..alerting.outbox import Chance
from ..database import clock, sql
from ..models import Application, StatusMessage
from ..tracing import switch
from . import status_messages

logger = logging.getLogger(__name__)

# One message of a task at a time: an earlier undelivered one, claimed or not, comes first.
DUE = """
FROM orchestration_application a CROSS JOIN LATERAL (
    SELECT m.id FROM orchestration_statusmessage m
    WHERE m.reply_to = a.name AND m.refused_at IS NULL
      AND (m.send_after IS NULL OR m.send_after <= (SELECT clock_timestamp()))
      AND NOT EXISTS (
        SELECT 1 FROM orchestration_statusmessage e
        WHERE e.task_id = m.task_id AND e.reply_to = m.reply_to AND e.number < m.number
          AND e.refused_at IS NULL)
    ORDER BY m.id LIMIT CASE WHEN a.push_failures > 0 THEN 1 ELSE %(limit)s END {lock}
) AS due
WHERE a.delivery = 'push' AND a.active
  AND (a.push_after IS NULL OR a.push_after <= (SELECT clock_timestamp()))
"""

# Each application's first message is sent before any application's second.
FIRST_OF_EACH = f"""
WITH found AS MATERIALIZED (
    SELECT due.id, a.id AS application {DUE.format(lock="FOR UPDATE OF m SKIP LOCKED")}
)
SELECT id FROM found
ORDER BY row_number() OVER (PARTITION BY application ORDER BY id), id LIMIT %(in_all)s
"""  # noqa: S608 - put together from constants
OUTBOX = outbox.Outbox(
    name="status",
    table="orchestration_statusmessage",
    due=FIRST_OF_EACH,
    waiting="refused_at IS NULL",
    error="reason",
    given_up="refused_at",
    least_tries=conf.MIN_PUSH_TRIES,
)

PAUSE = """
UPDATE orchestration_application SET push_failures = push_failures + 1, push_error = %(error)s,
    push_after = clock_timestamp() + %(wait)s * interval '1 second'
WHERE id = %(id)s
"""


def due() -> bool:
    """Whether a message is due."""
    found = sql.run(f"SELECT EXISTS (SELECT {DUE.format(lock='')})", {"limit": 1})
    return bool(found[0][0])


def send_due(limit: int = conf.PUSHES_PER_APPLICATION, chance: Chance = random.random) -> int:
    """Send up to `limit` due messages per application; return how many were tried.

    Must not run inside a transaction: other processes must see the claim.
    """
    claimed = OUTBOX.claim(limit=limit, in_all=conf.PUSHES_IN_TOTAL)
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
            id=OUTBOX.message_id(row),
            url=receiver.url,
            secrets=outbox.signing_secrets(receiver),
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
        _record_failure(row, problem, chance)
    if len(failed) == len(tried):  # not the message, but the receiver is to blame
        pause = outbox.wait(receiver.push_failures + 1, chance())
        problem = failed[-1][1]
        sql.run(PAUSE, {"id": str(receiver.id), "error": problem, "wait": pause})
        logger.warning("%s takes no messages; again in %.0f s: %s", receiver, pause, problem)
    elif receiver.push_failures:
        Application.objects.filter(id=receiver.id).update(
            push_failures=0, push_after=None, push_error=""
        )
        logger.info("%s takes messages again", receiver)


def _record_failure(row: StatusMessage, problem: str, chance: Chance) -> None:
    """Schedule the next try of a message, or give it up with an alert."""
    with transaction.atomic():
        if OUTBOX.failed(row, problem, chance):
            status_messages.alert(row, f"Given up after {row.tries} tries: {problem}")
