"""Replies that a scheduler has popped from its inbox, and how they return to it."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .. import conf
from ..messaging import queues
from ..messaging.messages import Malformed, Reply, with_number
from . import capture

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class PoppedReply:
    """A reply, as raw bytes from the inbox and parsed."""

    raw: bytes
    reply: Reply


def parse(raw_replies: Iterable[bytes]) -> list[PoppedReply]:
    """Return the replies; one that is malformed is logged and dropped."""
    popped = []
    for raw in raw_replies:
        try:
            popped.append(PoppedReply(raw=raw, reply=Reply.parse(raw)))
        except Malformed as error:
            logger.error("a malformed reply was refused: %s", error)
    return popped


def put_back(popped: Sequence[PoppedReply]) -> None:
    """Return replies to the inbox, in their order."""
    if popped:
        queues.put_back(queues.SCHEDULER, [item.raw for item in popped])


def postpone(popped: Sequence[PoppedReply]) -> None:
    """Return replies that need a row which another session has locked, the first few times at once.

    The engine's own sessions hold locks only briefly.
    """
    messages = [
        (
            with_number(item.raw, "waited", min(item.reply.waited + 1, conf.BATCH_SIZE)),
            item.reply,
        )
        for item in popped
    ]
    soon = [raw for raw, reply in messages if reply.waited < conf.LOCKED_IMMEDIATE_RETURNS]
    late = [
        (raw, reply) for raw, reply in messages if reply.waited >= conf.LOCKED_IMMEDIATE_RETURNS
    ]
    if soon:
        queues.put_back(queues.SCHEDULER, soon)
    if late:
        try:
            capture.postpone(queues.SCHEDULER, late, "another session has locked its task")
        except Exception:
            queues.put_back(queues.SCHEDULER, [raw for raw, _ in late])
            raise
