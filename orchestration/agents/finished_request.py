"""What came of one request, and what that says of the worker that performed it."""

from typing import NamedTuple

from ..messaging.messages import Reply, Request
from ..states import ANSWERED, Health

SAYS_NOTHING = frozenset({Health.NOTHING, Health.BUSY})  # of the instance


class FinishedRequest(NamedTuple):
    """A request that this worker has finished, and its reply, if there is one.

    `began` is when its performance began; None if it was taken too late to be performed, or the
    database's clock was set meanwhile: then the time that it took is not known.
    """

    request: Request
    reply: Reply | None = None
    began: float | None = None

    @property
    def good(self) -> bool | None:
        """Whether the instance did well; None if the reply says nothing about that."""
        if self.began is None:
            return None
        if self.reply is None or self.reply.code == "agent_error":
            return False
        if self.reply.health in SAYS_NOTHING:
            return None
        return self.reply.health == Health.GOOD or self.reply.outcome in ANSWERED
