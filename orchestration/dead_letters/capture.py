"""Store inbox messages that fail, and return them to their inbox.

A dead letter returns a few times, after growing waits. After the last it waits for a person, and an
alert is open for its queue.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction

from .. import conf
from ..alerting import alerts
from ..database import sql
from ..decisions.backoff import doubled
from ..messaging import queue_names, queues, signing
from ..messaging.messages import Reply, with_number
from ..models import DeadLetter
from ..models.alert import Severity
from ..models.fields import DatabaseNow
from ..models.inbox import INBOX_LETTERS

PREFIX = "dead_letter/"
FORGED = "messages are refused for their signatures"
EXAMPLE = 1000  # bytes of a refused message that are kept


@transaction.atomic
def store(queue: str, raw: bytes, error: Exception, *, returned: int) -> None:
    """Keep a message that failed although it `returned` to its inbox that often."""
    reason = sql.storable(f"{type(error).__name__}: {error}")
    wait = conf.DEAD_LETTER_WAITS_S[returned] if returned < len(conf.DEAD_LETTER_WAITS_S) else None
    DeadLetter.objects.create(
        queue=queue,
        body=raw.decode(errors="backslashreplace").replace("\0", r"\x00"),
        reason=reason,
        tries=returned + 1,
        retry_at=None if wait is None else DatabaseNow() + timedelta(seconds=wait),
    )
    if wait is None:
        alerts.raise_alert(
            PREFIX + queue,
            severity=Severity.CRITICAL,
            title=f"{queue}: a message fails again and again",
            detail=reason,
        )


@transaction.atomic
def keep_forged(queue: str, refused: signing.Refused) -> None:
    """Open an alert about messages that were refused for their signature; keep one, for people to see.

    What is kept cannot be read as a message, so returning it does no harm.
    """
    what = f"{refused.number} messages to {queue} were not signed with a key of this installation"
    body = f"refused: {refused.example[:EXAMPLE]!r}"
    DeadLetter.objects.create(queue=queue, body=body, reason=f"Forged: {what}", tries=1)
    alerts.raise_alert(
        PREFIX + queue, severity=Severity.CRITICAL, title=f"{queue}: {FORGED}", detail=what
    )


def postpone(queue: str, messages: Sequence[tuple[bytes, Reply]], reason: str) -> None:
    """Keep replies that can be recorded once another session has released a row: no failures.

    The more often one has waited, the longer it waits now. Its attempt does not expire meanwhile.
    """
    DeadLetter.objects.bulk_create(
        DeadLetter(
            queue=queue,
            body=raw.decode(),
            reason=reason,
            tries=reply.returned,
            step=reply.step,
            retry_at=DatabaseNow() + timedelta(seconds=wait),
        )
        for raw, reply in messages
        for count in [reply.waited - conf.LOCKED_IMMEDIATE_RETURNS + 1]
        for wait in [doubled(conf.LOCKED_WAIT_S, conf.LOCKED_WAIT_CAP_S, count)]
    )


@transaction.atomic
def return_due(limit: int) -> int:
    """Return up to `limit` letters whose time has come to their inboxes; return how many went.

    A row is deleted after Redis took its message: a crash in between sends it twice, which the
    fence of attempts is for. Those that Redis does not take stay, and so do those to queues that no
    running release declares.
    """
    due = DeadLetter.objects.filter(INBOX_LETTERS.retries, queue__in=queue_names.declared())
    letters: dict[str, list[DeadLetter]] = defaultdict(list)
    for letter in sql.lock(due).order_by("retry_at")[:limit]:
        letters[letter.queue].append(letter)
    sent: list[int] = []
    for queue, of_queue in letters.items():
        if queues.try_to_ring(queue, [_message(letter) for letter in of_queue]):
            sent += [letter.id for letter in of_queue]
    DeadLetter.objects.filter(id__in=sent).delete()
    return len(sent)


def _message(letter: DeadLetter) -> bytes:
    """Return the message, with the number of its failures."""
    return with_number(letter.body.encode(), "returned", letter.tries)
