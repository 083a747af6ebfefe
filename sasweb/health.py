"""For those who watch the web process from outside: is it alive, can it do its work?"""

import redis
from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from redis.backoff import NoBackoff
from redis.retry import Retry

PATIENCE = 1.0  # seconds that Redis may take


@require_safe
def alive(_request: HttpRequest) -> HttpResponse:
    """Say that the process answers; touches nothing, so that nobody restarts it in vain."""
    return HttpResponse("alive\n", content_type="text/plain")


@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """Say whether the database takes orders and Redis answers; 503 when one of them does not.

    Orders are accepted without Redis all the same: `takes_orders` tells.
    """
    answers = {"database": _database_answers(), "redis": _redis_answers()}
    away = [name for name, there in answers.items() if not there]
    return JsonResponse(
        {
            "ready": not away,
            "takes_orders": answers["database"],
            **{name: "ok" if there else "away" for name, there in answers.items()},
        },
        status=503 if away else 200,
    )


def _database_answers() -> bool:
    """Say whether the database answers, and takes writes: after a failover it may be a standby."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            writable = bool(cursor.fetchone() == ("off",))
    except Error:
        writable = False
    if not writable:
        connection.close()  # the next look is at the server that is behind the address by then
    return writable


def _redis_answers() -> bool:
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=PATIENCE,
            socket_connect_timeout=PATIENCE,
            retry=Retry(NoBackoff(), 0),  # by itself the client would try ten times
        ) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
