"""The outbox of alerts: one row per alert, channel and kind, sent until it arrives.

A notification is written in the transaction that changes its alert. So a cause is notified once, however
often it is seen. No transaction is open while rows are sent: they are leased (`database.lane`).
"""

import asyncio
import json
import logging
import random
from collections.abc import Collection, Sequence
from email.utils import parseaddr
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage

from .. import conf
from ..database import clock, leases, sql
from ..database.lane import LOCK, Chance
from ..models import Notification
from ..models.notification import NOTIFICATIONS, ChannelKind, NotificationKind
from ..payloads.text import printable
from . import runbook, webhooks

logger = logging.getLogger(__name__)

# Follows `WITH raised AS (INSERT …)`, so that an alert and its notifications are one statement.
OPENED = """
notified AS (
    INSERT INTO orchestration_notification (alert_id, channel_id, kind)
    SELECT r.id, c.id, 'opened' FROM raised r JOIN orchestration_notificationchannel c
        ON c.active AND (c.severity = 'warning' OR c.severity = r.severity)
    WHERE r.opened
)
"""

# Each channel that was notified of the opening is notified of the end; `{which}` names the alerts. They
# are locked in the order in which they are raised.
CLOSE = """
WITH closed AS (
    UPDATE orchestration_alert SET closed_at = clock_timestamp() WHERE id IN (
        SELECT a.id FROM orchestration_alert a WHERE a.closed_at IS NULL AND {which}
        ORDER BY a.fingerprint FOR NO KEY UPDATE {skip}) AND closed_at IS NULL
    RETURNING id
), notified AS (
    INSERT INTO orchestration_notification (alert_id, channel_id, kind)
    SELECT n.alert_id, n.channel_id, 'closed'
    FROM closed JOIN orchestration_notification n ON n.alert_id = closed.id
    JOIN orchestration_notificationchannel c ON c.id = n.channel_id AND c.active
    WHERE n.kind = 'opened' AND n.given_up_at IS NULL
)
SELECT id FROM closed
"""

# An end is never sent before its beginning.
DUE = f"""
SELECT m.id FROM orchestration_notification m WHERE {NOTIFICATIONS.where(NOTIFICATIONS.retries)}
  AND (m.kind = 'opened' OR NOT EXISTS (
    SELECT 1 FROM orchestration_notification o WHERE o.alert_id = m.alert_id
        AND o.channel_id = m.channel_id AND o.kind = 'opened'
        AND {NOTIFICATIONS.where(NOTIFICATIONS.open, "o")}))
ORDER BY m.send_after LIMIT %(limit)s {LOCK}
"""  # noqa: S608 - put together from constants

SENT = """
UPDATE orchestration_notification SET sent_at = clock_timestamp(), error = ''
WHERE id = ANY(%(ids)s) AND sent_at IS NULL
"""


def due() -> bool:
    """Whether a notification is due."""
    return bool(NOTIFICATIONS.rows.filter(NOTIFICATIONS.retries).exists())


def close(which: str, parameters: dict[str, Any], *, wait: bool = True) -> int:
    """Close the open alerts `a` that match the condition `which`, and notify; return how many.

    Without `wait`, locked alerts are skipped.
    """
    skip = "" if wait else "SKIP LOCKED"
    return len(sql.run(CLOSE.format(which=which, skip=skip), parameters))


def send_due(limit: int = conf.NOTIFICATION_BATCH_SIZE, chance: Chance = random.random) -> int:
    """Send up to `limit` due notifications; return how many were tried.

    Must not run inside a transaction: other processes must see the claim.
    """
    rows = list(
        Notification.objects.filter(id__in=leases.claim(NOTIFICATIONS, DUE, limit=limit))
        .select_related("alert", "channel")
        .order_by("id")
    )
    live = [row for row in rows if row.channel.active]
    problems = dict.fromkeys((row.id for row in rows), "The channel is switched off.")
    for send, kind in ((_post, ChannelKind.WEBHOOK), (_mail, ChannelKind.EMAIL)):
        of_kind = [row for row in live if row.channel.kind == kind]
        if of_kind:
            problems |= dict(zip((row.id for row in of_kind), send(of_kind), strict=True))
            _record(of_kind, problems, chance)  # at once: what arrived need not be sent again
    _record([row for row in rows if not row.channel.active], problems, chance)
    return len(rows)


def _record(rows: Collection[Notification], problems: dict[int, str], chance: Chance) -> None:
    """Record which notifications arrived."""
    sql.run(SENT, {"ids": [row.id for row in rows if not problems[row.id]]})
    for row in rows:
        if not (problem := problems[row.id]):
            continue
        failures = NOTIFICATIONS.fail(
            [row.id], problem, refused=not row.channel.active, tries=row.tries, chance=chance
        )
        given_up = any(failure.refused for failure in failures)
        level = logging.ERROR if given_up else logging.WARNING
        logger.log(
            level,
            "notification %d (%s) to %s was not delivered, %s: %s",
            row.id,
            row.alert,
            row.channel,
            f"given up after {row.tries} tries" if given_up else "to be sent again",
            problem,
        )


def _post(rows: Sequence[Notification]) -> list[str]:
    messages = [
        webhooks.Webhook(
            id=leases.message_id(NOTIFICATIONS, row),
            url=row.channel.address,
            secrets=webhooks.signing_secrets(row.channel),
            body=body(row),
        )
        for row in rows
    ]
    return asyncio.run(webhooks.post(messages, int(clock.now())))


def _mail(rows: Sequence[Notification]) -> list[str]:
    return [_mail_one(row) for row in rows]


def _mail_one(row: Notification) -> str:
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    message = EmailMessage(
        subject=headline(row),
        body=f"{headline(row)}\n\n{_story(row)}\n",
        to=[row.channel.address],
        headers={
            "Message-ID": f"<{leases.message_id(NOTIFICATIONS, row)}@{domain}>",
            "Auto-Submitted": "auto-generated",
        },
    )
    try:
        message.send()
    except Exception as error:  # noqa: BLE001 - a mail server, or a backend, may fail in any way
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def headline(row: Notification) -> str:
    """Return what happened in one line of plain text."""
    what = row.alert.severity if row.kind == NotificationKind.OPENED else "closed"
    return " ".join(f"[{what}] {row.alert.title}".split())


def _story(row: Notification) -> str:
    alert = row.alert
    lines = (
        [printable(alert.detail, keep="\n")[: conf.NOTIFICATION_DETAIL_CHARS]]
        if alert.detail
        else []
    )
    lines.append(
        f"First seen {alert.first_seen:%Y-%m-%d %H:%M:%S} UTC, {alert.count} times so far."
    )
    if row.kind == NotificationKind.OPENED:
        lines.append(f"What to do: {runbook.url(alert.fingerprint)}")
    if row.kind == NotificationKind.CLOSED and alert.closed_at:
        lines.append(f"Closed {alert.closed_at:%Y-%m-%d %H:%M:%S} UTC: the cause is gone.")
    return "\n".join(lines)


def body(row: Notification) -> bytes:
    """Return a webhook's JSON: `text` for Slack and its likes, and the same as data.

    What Slack would read as a mention, a link or formatting is escaped or switched off.
    """
    alert = row.alert
    text = f"{headline(row)}\n{_story(row)}"
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    message = {
        "text": text,
        "mrkdwn": False,
        "id": leases.message_id(NOTIFICATIONS, row),
        "type": f"alert.{row.kind}",
        "alert": {
            "id": alert.id,
            "cause": alert.fingerprint,
            "severity": alert.severity,
            "title": alert.title,
            "detail": printable(alert.detail, keep="\n")[: conf.NOTIFICATION_DETAIL_CHARS],
            "count": alert.count,
            "runbook": runbook.url(alert.fingerprint),
            "first_seen": alert.first_seen.isoformat(),
            "closed_at": alert.closed_at.isoformat() if alert.closed_at else None,
        },
    }
    return json.dumps(message, separators=(",", ":")).encode()
