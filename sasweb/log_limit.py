"""Limits the lines in the log that strangers can cause: a scan must not fill it.

Django logs each refused form and each unknown host below `django.security`.
"""

import logging
import time
from threading import Lock

LINES, SECONDS = 30, 60.0  # at most that many lines in that time, from each process


class Limited(logging.Filter):
    """Drops lines beyond the limit; the first of the next period says how many."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._until = self._count = self._left_out = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written."""
        if not record.name.startswith("django.security"):
            return True
        with self._lock:
            now, left_out = time.monotonic(), 0
            if now >= self._until:
                left_out = int(self._left_out)
                self._until, self._count, self._left_out = now + SECONDS, 0, 0
            self._count += 1
            if self._count > LINES:
                self._left_out += 1
                return False
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more were left out)", ()
        return True
