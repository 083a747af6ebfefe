"""The outbox of alerts: notices are written with the alert's own change, and sent until they arrive.

A notice is a row per alert, channel and kind, so that a cause is told once however often it is seen.
Sending claims a row by pushing its next time ahead (a lease), and holds no transaction meanwhile:
whoever dies while sending leaves a notice that is sent again when its lease is over. So a receiver
may hear the same twice, under the same id.
"""

import asyncio
import json
import logging
import random
from collections.abc import Callable, Collection, Sequence
from email.utils import parseaddr
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage

from . import clock, conf, sql, webhooks
from .models import Notice
from .models.notice import ChannelKind, NoticeKind

logger = logging.getLogger(__name__)

# To be put behind `WITH raised AS (INSERT …)`, so that an alert and its notices are one statement.
OPENED = """
told AS (
    INSERT INTO orchestration_notice (alert_id, channel_id, kind)
    SELECT r.id, c.id, 'opened' FROM raised r JOIN orchestration_noticechannel c
        ON c.active AND (c.severity = 'warning' OR c.severity = r.severity)
    WHERE r.opened
)
"""

# Whoever was told of the opening is told of the end; `{which}` names the alerts. They are locked in
# the order in which they are raised.
CLOSE = """
WITH closed AS (
    UPDATE orchestration_alert SET closed_at = clock_timestamp() WHERE id IN (
        SELECT a.id FROM orchestration_alert a WHERE a.closed_at IS NULL AND {which}
        ORDER BY a.fingerprint FOR NO KEY UPDATE {skip}) AND closed_at IS NULL
    RETURNING id
), told AS (
    INSERT INTO orchestration_notice (alert_id, channel_id, kind)
    SELECT n.alert_id, n.channel_id, 'closed'
    FROM closed JOIN orchestration_notice n ON n.alert_id = closed.id
    JOIN orchestration_noticechannel c ON c.id = n.channel_id AND c.active
    WHERE n.kind = 'opened' AND n.given_up_at IS NULL
)
SELECT id FROM closed
"""

# The LIMIT stands in a materialized part: joined directly, the planner may run it again for each row.
# An end is never told before its beginning.
CLAIM = """
WITH due AS MATERIALIZED (
    SELECT n.id FROM orchestration_notice n
    WHERE n.sent_at IS NULL AND n.given_up_at IS NULL AND n.send_after <= (SELECT clock_timestamp())
      AND (n.kind = 'opened' OR NOT EXISTS (
        SELECT 1 FROM orchestration_notice o WHERE o.alert_id = n.alert_id
            AND o.channel_id = n.channel_id AND o.kind = 'opened'
            AND o.sent_at IS NULL AND o.given_up_at IS NULL))
    ORDER BY n.send_after LIMIT %(limit)s FOR UPDATE OF n SKIP LOCKED
)
UPDATE orchestration_notice n
SET tries = n.tries + 1, send_after = clock_timestamp() + %(lease)s * interval '1 second'
FROM due WHERE n.id = due.id
RETURNING n.id
"""

SENT = """
UPDATE orchestration_notice SET sent_at = clock_timestamp(), error = ''
WHERE id = ANY(%(ids)s) AND sent_at IS NULL
"""

# Guarded by the try: whoever was so slow that another took over decides nothing any more.
FAILED = """
UPDATE orchestration_notice SET error = %(error)s,
    send_after = clock_timestamp() + %(wait)s * interval '1 second',
    given_up_at = CASE WHEN %(hopeless)s
        OR created_at < (SELECT clock_timestamp()) - %(patience)s * interval '1 second'
        THEN clock_timestamp() END
WHERE id = %(id)s AND tries = %(tries)s AND sent_at IS NULL AND given_up_at IS NULL
RETURNING given_up_at IS NOT NULL
"""


def due() -> bool:
    """Say whether a notice waits to be sent now."""
    rows = sql.run(
        "SELECT EXISTS (SELECT 1 FROM orchestration_notice WHERE sent_at IS NULL"
        " AND given_up_at IS NULL AND send_after <= (SELECT clock_timestamp()))",
        {},
    )
    return bool(rows[0][0])


def close(which: str, parameters: dict[str, Any], *, wait: bool = True) -> int:
    """Close open alerts `a` for which the condition `which` holds, and write that; return how many.

    Without `wait`, those that others have locked are left for another time.
    """
    skip = "" if wait else "SKIP LOCKED"
    return len(sql.run(CLOSE.format(which=which, skip=skip), parameters))


def send_due(limit: int = conf.NOTICES, chance: Callable[[], float] = random.random) -> int:
    """Send up to `limit` notices whose time has come; return how many were tried.

    Must not be called inside a transaction: what is claimed has to be so for others too.
    """
    claimed = [row[0] for row in sql.run(CLAIM, {"limit": limit, "lease": conf.NOTICE_LEASE})]
    notices = list(
        Notice.objects.filter(id__in=claimed).select_related("alert", "channel").order_by("id")
    )
    live = [notice for notice in notices if notice.channel.active]
    problems = dict.fromkeys((notice.id for notice in notices), "The channel is switched off.")
    for send, kind in ((_post, ChannelKind.WEBHOOK), (_mail, ChannelKind.EMAIL)):
        ours = [notice for notice in live if notice.channel.kind == kind]
        if ours:
            problems |= dict(zip((notice.id for notice in ours), send(ours), strict=True))
            _record(ours, problems, chance)  # at once: what arrived need not be sent again
    _record([notice for notice in notices if not notice.channel.active], problems, chance)
    return len(notices)


def wait(tries: int, chance: float) -> float:
    """Return the seconds to wait after the nth try failed: doubling, its upper half by lot."""
    full = min(conf.NOTICE_WAIT * 2.0 ** (tries - 1), conf.NOTICE_WAIT_CAP)
    return full * (0.5 + chance / 2)


def _record(
    notices: Collection[Notice], problems: dict[int, str], chance: Callable[[], float]
) -> None:
    """Write what came of the notices."""
    sql.run(SENT, {"ids": [notice.id for notice in notices if not problems[notice.id]]})
    for notice in notices:
        if not (problem := problems[notice.id]):
            continue
        row = {
            "id": notice.id,
            "tries": notice.tries,
            "error": problem,
            "wait": wait(notice.tries, chance()),
            "hopeless": not notice.channel.active,
            "patience": conf.NOTICE_PATIENCE,
        }
        given_up = any(rows[0] for rows in sql.run(FAILED, row))
        level = logging.ERROR if given_up else logging.WARNING
        logger.log(
            level,
            "notice %d (%s) to %s was not delivered, %s: %s",
            notice.id,
            notice.alert,
            notice.channel,
            f"given up after {notice.tries} tries" if given_up else "to be sent again",
            problem,
        )


def _post(notices: Sequence[Notice]) -> list[str]:
    messages = [
        webhooks.Webhook(
            id=message_id(notice),
            url=notice.channel.address,
            secrets=[one for one in (notice.channel.secret, notice.channel.old_secret) if one],
            body=body(notice),
        )
        for notice in notices
    ]
    return asyncio.run(webhooks.post(messages, int(clock.now())))


def _mail(notices: Sequence[Notice]) -> list[str]:
    return [_mail_one(notice) for notice in notices]


def _mail_one(notice: Notice) -> str:
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    message = EmailMessage(
        subject=headline(notice),
        body=f"{headline(notice)}\n\n{_story(notice)}\n",
        to=[notice.channel.address],
        headers={
            "Message-ID": f"<{message_id(notice)}@{domain}>",
            "Auto-Submitted": "auto-generated",
        },
    )
    try:
        message.send()
    except Exception as error:  # noqa: BLE001 - a mail server, or a backend, may fail in any way
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def message_id(notice: Notice) -> str:
    """Return what is the same for a notice however often it is sent, and for no other anywhere."""
    return f"notice-{notice.id}-{int(notice.created_at.timestamp() * 1_000_000)}"


def headline(notice: Notice) -> str:
    """Return what happened in one line of plain text."""
    what = notice.alert.severity if notice.kind == NoticeKind.OPENED else "closed"
    return " ".join(f"[{what}] {notice.alert.title}".split())


def _story(notice: Notice) -> str:
    alert = notice.alert
    lines = [_plain(alert.detail)[: conf.NOTICE_DETAIL]] if alert.detail else []
    lines.append(
        f"First seen {alert.first_seen:%Y-%m-%d %H:%M:%S} UTC, {alert.count} times so far."
    )
    if notice.kind == NoticeKind.CLOSED and alert.closed_at:
        lines.append(f"Closed {alert.closed_at:%Y-%m-%d %H:%M:%S} UTC: the cause is gone.")
    return "\n".join(lines)


def body(notice: Notice) -> bytes:
    """Return a webhook's JSON: `text` for Slack and its likes, and the same as data.

    What Slack would read as a mention, a link or formatting is escaped or switched off.
    """
    alert = notice.alert
    text = f"{headline(notice)}\n{_story(notice)}"
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    message = {
        "text": text,
        "mrkdwn": False,
        "id": message_id(notice),
        "type": f"alert.{notice.kind}",
        "alert": {
            "id": alert.id,
            "cause": alert.fingerprint,
            "severity": alert.severity,
            "title": alert.title,
            "detail": _plain(alert.detail)[: conf.NOTICE_DETAIL],
            "count": alert.count,
            "first_seen": alert.first_seen.isoformat(),
            "closed_at": alert.closed_at.isoformat() if alert.closed_at else None,
        },
    }
    return json.dumps(message, separators=(",", ":")).encode()


def _plain(text: str) -> str:
    """Return `text` without control characters, which have no business in a message."""
    return "".join(one if one.isprintable() or one == "\n" else " " for one in text)
