"""What Redis says of itself: for the doctor and the metrics, with the short timeout of pages."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .. import conf
from . import queues

Info = Mapping[str, Any]  # its fields


def info() -> Info:
    """Return the answer to INFO, over a connection of its own; raise `queues.Unreachable`."""
    with (
        queues.Patience().asking(),
        Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=conf.REDIS_PAGE_TIMEOUT_S,
            socket_connect_timeout=conf.REDIS_PAGE_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            **queues.QUIETLY,
        ) as client,
    ):
        return dict(client.info())
