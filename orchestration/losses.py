"""What our own processes lost or kept unread: no service is blamed for it, nor is it waited for (P10)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import blake2s
from typing import Any

from . import conf, queues


class Losses:
    """What a leader knows of them from sweep to sweep.

    `at` is when Redis was last away, lost what it held, or kept replies unread, on the database's
    clock: what was dispatched earlier may be lost or unread for that. `silent_since` is by when
    attempts without a reply must have ended to be given up: a while ago, where theirs may be among
    those that lie unread or cannot be sent.
    """

    def __init__(self) -> None:
        self.at: datetime | None = None
        self.silent_since: datetime | None = None
        self._looked = False
        self._unread = ""  # the oldest message in the schedulers' inbox, as a digest

    def look(self, now: datetime) -> None:
        """Look at Redis once, `now` by the database's clock."""
        try:
            message, kept = queues.oldest(queues.SCHEDULER)
        except queues.Unreachable:
            kept, waits = False, True
        else:
            unread = blake2s(message).hexdigest() if message else ""
            # the same since the last look: no scheduler takes what is there
            waits = unread != "" and unread == self._unread
            self._unread = unread
        if waits or not kept or not self._looked:  # nor is known what was before the first look
            self.at = now
        self._looked = True
        self.silent_since = now - timedelta(seconds=conf.UNREAD) if waits else now

    def dump(self) -> dict[str, Any]:
        """Return what another process must know to go on looking."""
        return {"at": self.at.isoformat() if self.at else None, "unread": self._unread}

    @classmethod
    def load(cls, left: Mapping[str, Any] | None) -> "Losses":
        """Return what another process knew of them; without anything, nothing was looked at."""
        loaded = cls()
        if left:
            loaded.at = datetime.fromisoformat(left["at"]) if left["at"] else None
            loaded._unread = left["unread"]
            loaded._looked = True
        return loaded
