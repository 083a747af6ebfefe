"""The scheduler: records what agents replied, claims what may run next, sends it (P1, P8, P21–P23).

Any number run side by side; one turn is one transaction over a whole batch.
"""

import logging
from collections.abc import Collection, Sequence

from django.db import DataError, IntegrityError, transaction

from . import conf, crashpoints, queues
from .messages import Malformed, Reply, Request
from .transitions import Recorded, claim, record

logger = logging.getLogger(__name__)

UNSTORABLE = (DataError, IntegrityError)


def turn(by: str, raw_replies: Sequence[bytes], look_at: Collection[str]) -> set[str]:
    """Record `raw_replies`, then claim for the agents they touched and those in `look_at`.

    Returns the agents for which a whole batch was claimed: there may be more. The requests go out
    after the commit: what is never sent expires, and is tried again.
    """
    replies = [reply for raw in raw_replies if (reply := _parse(raw))]
    try:
        recorded, claimed = _record_and_claim(by, replies, look_at)
    except UNSTORABLE as error:
        if not replies:
            raise
        if len(replies) == 1:
            logger.error("a reply that cannot be stored was refused: %s", str(error).strip())
            return set(look_at)
        # one of them spoils the batch: take them one by one, so that only that one is lost
        return set().union(*(turn(by, [raw], look_at) for raw in raw_replies))
    for reply, refusal in recorded.refused:
        logger.info("a reply to attempt %d was refused: %s", reply.attempt, refusal.value)
    crashpoints.reached("scheduler.after_claim", claimed)
    for agent, requests in claimed.items():
        queues.try_to_ring(agent, [request.dump() for request in requests])
    crashpoints.reached("scheduler.after_send", claimed)
    for application in sorted(recorded.applications):
        queues.try_to_ring(queues.STATUS_PREFIX + application)
    return {agent for agent, requests in claimed.items() if len(requests) >= conf.BATCH}


@transaction.atomic
def _record_and_claim(
    by: str, replies: Sequence[Reply], look_at: Collection[str]
) -> tuple[Recorded, dict[str, list[Request]]]:
    recorded = record(replies) if replies else Recorded()
    return recorded, claim(recorded.agents.union(look_at), by)


def _parse(raw: bytes) -> Reply | None:
    try:
        return Reply.parse(raw)
    except Malformed as error:
        logger.error("a malformed reply was refused: %s", error)
        return None
