"""Signatures of messages: who may write to Redis, and has no key, can forge none.

A signature is the last field of a message, `mac`: BLAKE2b under a key, over the message and the queue that it
is for. A release or process without a key ignores the field. "Look" has none: it decides nothing.
"""

import hmac
import logging
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from django.conf import settings

logger = logging.getLogger(__name__)
LOOK = b"look"  # a message that asks to look at the state store
FIELD = b',"mac":"%s"}'
SIZE = 16  # bytes of a signature
LENGTH = len(FIELD % (b"0" * 2 * SIZE))


class Refused(NamedTuple):
    """How many messages to a queue were refused, and one of them."""

    number: int
    example: bytes


_refused: dict[str, Refused] = {}


@lru_cache(maxsize=256)
def _keyed(key: str, queue: str) -> "blake2b":
    """Return the state of the hash before the first byte of a message."""
    secret = blake2b(key.encode(), person=b"sas.messages").digest()
    return blake2b(queue.encode() + b"\0", key=secret, digest_size=SIZE)


def _signed(key: str, queue: str, message: bytes) -> bytes:
    state = _keyed(key, queue).copy()
    state.update(message)
    return message[:-1] + FIELD % state.hexdigest().encode()


def sign(queue: str, messages: Sequence[bytes]) -> Sequence[bytes]:
    """Return the messages to a queue as they are sent: signed, if there is a key."""
    key = settings.MESSAGE_KEYS[0] if settings.MESSAGE_KEYS else ""
    if not key:
        return messages
    return [message if message == LOOK else _signed(key, queue, message) for message in messages]


def accepted(queue: str, messages: Sequence[bytes]) -> list[bytes]:
    """Return the messages of a queue that are genuine, as they were before they were signed.

    In place of the others there is one "look", so that the caller goes on: more may lie behind them.
    """
    if not settings.MESSAGE_KEYS:
        return list(messages)
    good = [message for raw in messages if (message := _verified(queue, raw)) is not None]
    if bad := len(messages) - len(good):
        logger.error("%d messages to %s were refused: none of our keys signed them", bad, queue)
        example = next(raw for raw in messages if _verified(queue, raw) is None)
        earlier = _refused.get(queue)
        _refused[queue] = Refused(bad + (earlier.number if earlier else 0), example)
        good.append(LOOK)
    return good


def _verified(queue: str, raw: bytes) -> bytes | None:
    if raw == LOOK:
        return raw
    message = raw[:-LENGTH] + b"}"
    for key in settings.MESSAGE_KEYS:
        if hmac.compare_digest(_signed(key, queue, message), raw):
            return message
    return raw if settings.UNSIGNED_MESSAGES and not _is_signed(raw) else None


def _is_signed(raw: bytes) -> bool:
    return raw[-LENGTH:].startswith(FIELD[: FIELD.index(b"%")])


def refused(queue: str) -> Refused | None:
    """Return what was refused of a queue since this was last asked."""
    return _refused.pop(queue, None)
