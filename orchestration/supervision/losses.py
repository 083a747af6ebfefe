"""Detect messages that the engine itself lost or has not read, as no service is to blame (P10)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import blake2s
from typing import Any

from .. import conf
from ..messaging import queues, redis_breaker


class Losses:
    """What a leader knows about lost and unread messages, from sweep to sweep.

    `at` is when Redis was last away, lost its data, or held unread replies, on the database's clock:
    requests dispatched earlier may be lost or unread for that reason. `silent_since` is the time by which
    attempts without a reply must have ended to count as failed: a while ago if their replies may be
    unread or unsent.
    """

    def __init__(self) -> None:
        self.at: datetime | None = None
        self.silent_since: datetime | None = None
        self._looked = False
        self._unread = ""  # the oldest message in the schedulers' inbox, as a digest

    def look(self, now: datetime) -> None:
        """Check Redis once; `now` is on the database's clock."""
        try:
            message, has_data = queues.oldest(queues.SCHEDULER)
        except redis_breaker.Unreachable:
            has_data, waits = False, True
        else:
            unread = blake2s(message).hexdigest() if message else ""
            # unchanged since the last look: no scheduler reads the inbox
            waits = unread != "" and unread == self._unread
            self._unread = unread
        if (
            waits or not has_data or not self._looked
        ):  # before the first look anything may have happened
            self.at = now
        self._looked = True
        self.silent_since = now - timedelta(seconds=conf.UNREAD_ALLOWANCE_S) if waits else now

    def dump(self) -> dict[str, Any]:
        """Return the state that another process needs to continue."""
        return {"at": self.at.isoformat() if self.at else None, "unread": self._unread}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> "Losses":
        """Return the state that another process dumped; a new state if that is empty."""
        loaded = cls()
        if dumped:
            loaded.at = datetime.fromisoformat(dumped["at"]) if dumped["at"] else None
            loaded._unread = dumped["unread"]
            loaded._looked = True
        return loaded
