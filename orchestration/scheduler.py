"""The scheduler: records what agents replied, claims what may run next, sends it (P1, P8, P21–P23).

Any number run side by side; one turn is one transaction over a whole batch.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from . import batches, conf, crashpoints, dead_letters, queues, sql
from .messages import Malformed, Reply
from .transitions import Claimed, Recorded, claim, record

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Turn:
    """What a turn leaves to be done.

    `more` are the agents to claim for again at once; `again_in` is the seconds until a gate lets more
    through by itself, if that is soon.
    """

    more: set[str] = field(default_factory=set)
    again_in: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Popped:
    """A reply, as it was taken from the inbox and as it was understood."""

    raw: bytes
    reply: Reply


def turn(by: str, raw_replies: Sequence[bytes], look_at: Collection[str]) -> Turn:
    """Record `raw_replies`, then claim for the agents they touched and those in `look_at`.

    Each reply is recorded, kept as a dead letter, or back in the inbox, whatever is raised. The
    requests go out after the commit: what is never sent expires, and is tried again.
    """
    popped = [one for raw in raw_replies if (one := _parse(raw))]
    recorded, claimed = _record_and_claim(by, popped, look_at)
    for reply, refusal in recorded.refused:
        logger.info("a reply to attempt %d was refused: %s", reply.attempt, refusal.value)
    crashpoints.reached("scheduler.after_claim", claimed.requests)
    for agent, requests in claimed.requests.items():
        queues.try_to_ring(agent, [request.dump() for request in requests])
    crashpoints.reached("scheduler.after_send", claimed.requests)
    for queue in sorted({queues.of_application(name) for name in recorded.applications}):
        queues.try_to_ring(queue)
    full = {agent for agent, batch in claimed.requests.items() if len(batch) >= conf.BATCH}
    return Turn(more=full | claimed.more, again_in=claimed.again_in)


def _record_and_claim(
    by: str, popped: Sequence[_Popped], look_at: Collection[str]
) -> tuple[Recorded, Claimed]:
    """Record and claim in one transaction; if it fails, each by itself: neither spoils the other."""
    try:
        with transaction.atomic():
            recorded = record([one.reply for one in popped]) if popped else Recorded()
            return recorded, claim(recorded.agents.union(look_at), by, recorded.heard)
    except Exception as error:
        if not popped:
            raise
        if sql.is_unavailable(error):
            _put_back(popped)
            raise
        logger.warning("a turn is taken in parts: %s", sql.first_line(error))
    recorded = _record_in_parts(popped)
    return recorded, claim(recorded.agents.union(look_at), by, recorded.heard)


def _record_in_parts(popped: Sequence[_Popped]) -> Recorded:
    """Record what can be recorded; keep what fails alone as dead letters, and put back the rest."""
    recorded = Recorded()
    done = 0

    def deal(some: Sequence[_Popped]) -> int:
        nonlocal done
        recorded.add(record([one.reply for one in some]))
        done += len(some)
        return len(some)

    def keep(one: _Popped, error: Exception) -> None:
        nonlocal done
        dead_letters.keep(queues.SCHEDULER, one.raw, error, returned=one.reply.returned)
        logger.error("a reply that cannot be recorded is kept: %s", sql.first_line(error))
        done += 1

    try:
        batches.bisect(popped, deal, keep)
    finally:
        _put_back(popped[done:])  # in their order: these are those that nothing was done about
    return recorded


def _put_back(popped: Sequence[_Popped]) -> None:
    if popped:
        queues.put_back(queues.SCHEDULER, [one.raw for one in popped])


def _parse(raw: bytes) -> _Popped | None:
    try:
        return _Popped(raw=raw, reply=Reply.parse(raw))
    except Malformed as error:
        logger.error("a malformed reply was refused: %s", error)
        return None
