"""The scheduler: records what agents replied, claims what may run next, sends it (P1, P8, P21–P23).

Any number run side by side; one turn is one transaction over a whole batch.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from django.db import DataError, IntegrityError, transaction

from . import conf, crashpoints, queues
from .messages import Malformed, Reply
from .transitions import Claimed, Recorded, claim, record

logger = logging.getLogger(__name__)

UNSTORABLE = (DataError, IntegrityError)


@dataclass(kw_only=True)
class Turn:
    """What a turn leaves to be done.

    `more` are the agents for which a whole batch was claimed; `again_in` is the seconds until a gate
    lets more through by itself, if that is soon.
    """

    more: set[str] = field(default_factory=set)
    again_in: float | None = None


def turn(by: str, raw_replies: Sequence[bytes], look_at: Collection[str]) -> Turn:
    """Record `raw_replies`, then claim for the agents they touched and those in `look_at`.

    The requests go out after the commit: what is never sent expires, and is tried again.
    """
    replies = [reply for raw in raw_replies if (reply := _parse(raw))]
    try:
        recorded, claimed = _record_and_claim(by, replies, look_at)
    except UNSTORABLE as error:
        if not replies:
            raise
        if len(replies) == 1:
            logger.error("a reply that cannot be stored was refused: %s", str(error).strip())
            return Turn(more=set(look_at))
        # one of them spoils the batch: take them one by one, so that only that one is lost
        alone = [turn(by, [raw], look_at) for raw in raw_replies]
        return Turn(more=set().union(*(one.more for one in alone)))
    for reply, refusal in recorded.refused:
        logger.info("a reply to attempt %d was refused: %s", reply.attempt, refusal.value)
    crashpoints.reached("scheduler.after_claim", claimed.requests)
    for agent, requests in claimed.requests.items():
        queues.try_to_ring(agent, [request.dump() for request in requests])
    crashpoints.reached("scheduler.after_send", claimed.requests)
    for queue in sorted({queues.of_application(name) for name in recorded.applications}):
        queues.try_to_ring(queue)
    full = {agent for agent, batch in claimed.requests.items() if len(batch) >= conf.BATCH}
    return Turn(more=full, again_in=claimed.again_in)


@transaction.atomic
def _record_and_claim(
    by: str, replies: Sequence[Reply], look_at: Collection[str]
) -> tuple[Recorded, Claimed]:
    recorded = record(replies) if replies else Recorded()
    return recorded, claim(recorded.agents.union(look_at), by, recorded.heard)


def _parse(raw: bytes) -> Reply | None:
    try:
        return Reply.parse(raw)
    except Malformed as error:
        logger.error("a malformed reply was refused: %s", error)
        return None
