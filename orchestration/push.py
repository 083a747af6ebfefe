"""Status messages that are sent: signed webhooks to the applications that want them (P27).

At least once, and in order for each task: the next message of a task goes out when the one before
has arrived or was given up. A message is claimed by pushing its next time ahead (a lease), as a
notice is, so whoever dies while sending leaves one that is sent again, under the same id. A receiver
that fails is left in peace for a while, longer each time, and then asked with one message; meanwhile
nobody else's messages wait for it.
"""

import asyncio
import json
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from django.db import transaction

from . import clock, conf, sql, status, webhooks
from .models import Application, StatusMessage
from .notices import wait

logger = logging.getLogger(__name__)

# One message of a task at a time: an earlier one that lies there, claimed or not, comes first.
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

# Of many applications each gets a first message sent before any gets a second.
CLAIM = f"""
WITH due AS MATERIALIZED (
    SELECT due.id, a.id AS application {DUE.format(lock="FOR UPDATE OF m SKIP LOCKED")}
), claimed AS MATERIALIZED (
    SELECT id FROM due
    ORDER BY row_number() OVER (PARTITION BY application ORDER BY id), id LIMIT %(in_all)s
)
UPDATE orchestration_statusmessage m
SET tries = m.tries + 1, send_after = clock_timestamp() + %(lease)s * interval '1 second'
FROM claimed WHERE m.id = claimed.id
RETURNING m.id
"""  # noqa: S608 - put together from constants

# Guarded by the try: whoever was so slow that another took over decides nothing any more.
FAILED = """
UPDATE orchestration_statusmessage SET reason = %(error)s,
    send_after = clock_timestamp() + %(wait)s * interval '1 second',
    refused_at = CASE WHEN tries >= %(least)s
        AND created_at < (SELECT clock_timestamp()) - %(patience)s * interval '1 second'
        THEN clock_timestamp() END
WHERE id = %(id)s AND tries = %(tries)s AND refused_at IS NULL
RETURNING refused_at IS NOT NULL
"""

PAUSE = """
UPDATE orchestration_application SET push_failures = push_failures + 1, push_error = %(error)s,
    push_after = clock_timestamp() + %(wait)s * interval '1 second'
WHERE id = %(id)s
"""


def due() -> bool:
    """Say whether a message waits to be sent now."""
    found = sql.run(f"SELECT EXISTS (SELECT {DUE.format(lock='')})", {"limit": 1})
    return bool(found[0][0])


def send_due(limit: int = conf.PUSHES, chance: Callable[[], float] = random.random) -> int:
    """Send up to `limit` messages to each application, and some to all; return how many were tried.

    Must not be called inside a transaction: what is claimed has to be so for others too.
    """
    sizes = {"limit": limit, "in_all": conf.PUSHES_IN_ALL, "lease": conf.NOTICE_LEASE}
    claimed = [row[0] for row in sql.run(CLAIM, sizes)]
    rows = StatusMessage.objects.filter(id__in=claimed).order_by("id")
    batches: dict[str, list[StatusMessage]] = defaultdict(list)
    for row in rows:
        batches[row.reply_to].append(row)
    if batches:
        receivers = Application.objects.in_bulk(list(batches), field_name="name")
        _send({receivers[name]: batch for name, batch in batches.items()}, chance)
    return len(claimed)


def _send(
    batches: Mapping[Application, Sequence[StatusMessage]], chance: Callable[[], float]
) -> None:
    """POST all at once, and write what came of it."""
    posts = [
        webhooks.Webhook(
            id=message_id(row),
            url=receiver.url,
            secrets=[one for one in (receiver.secret, receiver.old_secret) if one],
            body=json.dumps(status.as_json(row), separators=(",", ":")).encode(),
        )
        for receiver, batch in batches.items()
        for row in batch
    ]
    problems = iter(asyncio.run(webhooks.post(posts, int(clock.now()))))
    results = {
        receiver: [(row, next(problems)) for row in batch] for receiver, batch in batches.items()
    }
    # at once: what has arrived need not be sent again
    arrived = [row.id for tried in results.values() for row, problem in tried if not problem]
    StatusMessage.objects.filter(id__in=arrived).delete()
    for receiver, tried in results.items():
        _record(receiver, tried, chance)


def _record(
    receiver: Application,
    tried: Sequence[tuple[StatusMessage, str]],
    chance: Callable[[], float],
) -> None:
    failed = [(row, problem) for row, problem in tried if problem]
    for row, problem in failed:
        _failed(row, problem, chance)
    if len(failed) == len(tried):  # not the message, but the receiver is to blame
        pause = wait(min(receiver.push_failures + 1, 30), chance())
        problem = failed[-1][1]
        sql.run(PAUSE, {"id": str(receiver.id), "error": problem, "wait": pause})
        logger.warning("%s takes no messages; again in %.0f s: %s", receiver, pause, problem)
    elif receiver.push_failures:
        Application.objects.filter(id=receiver.id).update(
            push_failures=0, push_after=None, push_error=""
        )
        logger.info("%s takes messages again", receiver)


def _failed(row: StatusMessage, problem: str, chance: Callable[[], float]) -> None:
    """Write when a message is tried again; or that it was given up, with an alert."""
    values = {
        "id": row.id,
        "tries": row.tries,
        "error": problem,
        "wait": wait(min(row.tries, 30), chance()),
        "least": conf.PUSH_TRIES,
        "patience": conf.NOTICE_PATIENCE,
    }
    with transaction.atomic():
        if any(given_up for (given_up,) in sql.run(FAILED, values)):
            status.alert(row, f"Given up after {row.tries} tries: {problem}")


def message_id(row: StatusMessage) -> str:
    """Return what is the same for a message however often it is sent, and for no other anywhere."""
    return f"status-{row.id}-{int(row.created_at.timestamp() * 1_000_000)}"
