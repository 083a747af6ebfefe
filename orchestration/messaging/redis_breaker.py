"""A circuit breaker around the commands to Redis: one command at most waits for a Redis that hangs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeout

from .. import conf


class Unreachable(Exception):
    """Redis does not answer. Tasks are safe; the supervisor rings again when Redis is back."""


class Silent(Unreachable):
    """Redis timed out a moment ago, so the command was not sent."""


class RedisCircuitBreaker:
    """A circuit breaker for a Redis that hangs: only one command waits for it at a time.

    After a timeout all other commands fail at once, for `conf.REDIS_BACKOFF_S` seconds. Then one command
    probes. A Redis that refuses connections fails at once anyway, so it is always asked.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._silent_until: float | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Run Redis commands in this context; any failure of theirs raises `Unreachable`."""
        with self._lock:
            now = time.monotonic()
            if self._silent_until is not None:
                if now < self._silent_until:
                    raise Silent("Redis did not answer a moment ago")
                # this command probes for all others
                self._silent_until = now + conf.REDIS_BACKOFF_S
        try:
            yield
        except RedisTimeout as error:
            self._silent_until = time.monotonic() + conf.REDIS_BACKOFF_S
            raise Unreachable(str(error)) from error
        except RedisError as error:
            self._silent_until = None
            raise Unreachable(str(error)) from error
        self._silent_until = None
