"""Health endpoints of the web process: liveness and readiness."""

from functools import cache

import redis
from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from redis.backoff import NoBackoff
from redis.retry import Retry

from orchestration.messaging import redis_client

REDIS_TIMEOUT_S = 1.0


@require_safe
def alive(_request: HttpRequest) -> HttpResponse:
    """Return 200 while the process answers; checks no dependency, as a restart would not fix one."""
    return HttpResponse("alive\n", content_type="text/plain")


@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """Return 503 while the database does not accept orders; says as well whether Redis answers.

    Orders are accepted without Redis, so a balancer must not take the shop out then.
    """
    answers = {"database": _database_answers(), "redis": _redis_answers()}
    return JsonResponse(
        {
            "ready": answers["database"],
            **{name: "ok" if there else "away" for name, there in answers.items()},
        },
        status=200 if answers["database"] else 503,
    )


def _database_answers() -> bool:
    """Return whether the database answers and accepts writes: after a failover it may be a standby."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            writable = bool(cursor.fetchone() == ("off",))
    except Error:
        writable = False
    if not writable:
        connection.close()  # the next check connects to the server that is primary then
    return writable


def _redis_answers() -> bool:
    try:
        return bool(_client(settings.REDIS_URL).ping())
    except redis.RedisError:
        return False


@cache
def _client(url: str) -> redis.Redis:
    """Return a client whose connections are kept: anyone may ask, and so costs no new one each time."""
    return redis_client.client(
        url,
        socket_timeout=REDIS_TIMEOUT_S,
        socket_connect_timeout=REDIS_TIMEOUT_S,
        # once more for a connection that was lost since; by itself the client would try ten times
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    )
