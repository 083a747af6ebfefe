"""Facts about the Redis server, for the doctor and the metrics, with the short timeout of pages."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from redis.exceptions import ResponseError

from . import queue_depths
from .redis_breaker import RedisCircuitBreaker

Info = Mapping[str, Any]  # its fields


def info() -> Info:
    """Return the answer to INFO, over a connection of its own; raise `Unreachable`."""
    with RedisCircuitBreaker().asking(), queue_depths.client(settings.REDIS_URL) as client:
        return dict(client.info())


def options(*names: str) -> Mapping[str, str]:
    """Return these options of its configuration; none, if its user may not ask for them."""
    with RedisCircuitBreaker().asking(), queue_depths.client(settings.REDIS_URL) as client:
        try:
            return dict(client.config_get(*names))
        except ResponseError:  # a managed Redis has no CONFIG
            return {}
