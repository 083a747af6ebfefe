"""Inboxes and doorbells of queues, on Redis.

The database is the truth. A lost request or reply delays its step until its deadline; a lost doorbell
delays work until the supervisor rings again.

- An *inbox* is a list of messages to the workers of one queue: requests to an agent, replies to the
  schedulers, and for every queue "look": there is work in the state store.
- A *doorbell* is an RQ job that calls a worker to one queue. Its flag stays set while a worker is called
  or serves the queue, so no second job is needed: that worker takes new messages from the inbox at once.
  The worker clears the flag *before* its last look. The flag also expires, so that under lasting load
  further workers are called to help.
"""

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import django_rq
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue

from .. import conf
from . import redis_client, signing
from .redis_breaker import RedisCircuitBreaker, Unreachable

logger = logging.getLogger(__name__)

SUBMISSION = "submission"
SCHEDULER = "scheduler"
ALERTS = "alerts"
PUSH = "push"
STATUS_PREFIX = "status."
# Connections do not send the client's version to Redis: reading it costs 2 ms and 2 MB each time.
NO_DRIVER_INFO: dict[str, Any] = {"driver_info": None}
LOOK = signing.LOOK

HELD = re.compile(rb"(\d{1,18}):(\d{1,9})")  # others may write there, too

# The function that each queue's doorbell runs; a worker refuses every other function.
HANDLERS = {
    SUBMISSION: "orchestration.workers.jobs.take_submissions",
    SCHEDULER: "orchestration.workers.jobs.schedule",
    ALERTS: "orchestration.workers.jobs.send_notifications",
    PUSH: "orchestration.workers.jobs.push_status",
}
CALL_AGENT = "orchestration.workers.jobs.call_agent"
DELIVER_STATUS = "orchestration.workers.jobs.deliver_status"


def serve(queue: str, handler: str) -> None:
    """Have a queue of an application's own, whose doorbell runs `handler`: a function by its path."""
    HANDLERS[queue] = handler


def handler_of(queue: str) -> tuple[str, tuple[str, ...]]:
    """Return the function that a queue's doorbell runs, and its arguments."""
    if queue in HANDLERS:
        return HANDLERS[queue], ()
    if queue.startswith(STATUS_PREFIX):
        return DELIVER_STATUS, (queue.removeprefix(STATUS_PREFIX),)
    return CALL_AGENT, (queue,)


def inbox(queue: str) -> str:
    """Return the key of the list of messages to a queue's workers."""
    return f"sas:inbox:{queue}"


def flag(queue: str) -> str:
    """Return the key that is set while a queue's doorbell rings, or a worker serves the queue."""
    return f"sas:ringing:{queue}"


def at_hand(worker: str) -> str:
    """Return the key of the requests that an agent's worker holds, for recovery if it dies."""
    return f"sas:at:{worker}"


def taken(agent: str) -> str:
    """Return the key of the requests that an agent's workers have taken, each until its deadline."""
    return f"sas:taken:{agent}"


def reports(agent: str) -> str:
    """Return the key of the reports that an agent's workers exchange."""
    return f"sas:reports:{agent}"


def connection() -> Redis:
    """Return this process's client: short timeouts, no silent retries (which send a job twice)."""
    # Two threads must not create one each: the client that is dropped closes its connections, even
    # those in use.
    with _connecting:
        return _connection()


_connecting = Lock()
_breaker = RedisCircuitBreaker()


@cache
def _connection() -> Redis:
    return redis_client.client(
        settings.REDIS_URL,
        socket_timeout=conf.REDIS_TIMEOUT_S,
        socket_connect_timeout=conf.REDIS_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
        **NO_DRIVER_INFO,
    )


def worker_connection() -> Redis:
    """Return a client for a worker that waits on its queue; RQ sets its timeouts."""
    return redis_client.client(settings.REDIS_URL, retry=Retry(NoBackoff(), 0), **NO_DRIVER_INFO)


def queue(name: str, redis: Redis | None = None) -> Queue:
    """Return an RQ queue; the engine's stand in RQ_QUEUES once they are used, beside those of others."""
    settings.RQ_QUEUES.setdefault(name, _for_rq())
    return django_rq.get_queue(name, connection=redis or connection(), commit_mode="auto")


@cache
def _for_rq() -> dict[str, Any]:
    """Return django-rq's settings of each queue of the engine."""
    master = redis_client.master(settings.REDIS_URL)
    server = master.for_rq() if master else {"URL": settings.REDIS_URL}
    return {**server, "SERIALIZER": "rq.serializers.JSONSerializer", "DEFAULT_TIMEOUT": -1}


def ring(name: str, messages: Sequence[bytes] = ()) -> None:
    """Add messages to a queue's inbox and call a worker; raise `Unreachable`."""
    ring_all({name: messages})


def ring_all(messages: Mapping[str, Sequence[bytes]]) -> None:
    """Do so for each queue, in one round trip; raise `Unreachable`."""
    if messages:
        with _breaker.asking():
            _ring(messages)


def _ring(messages: Mapping[str, Sequence[bytes]]) -> None:
    pipeline = connection().pipeline(transaction=False)
    for name, of_queue in messages.items():
        pipeline.rpush(inbox(name), *(signing.sign(name, of_queue) or [LOOK]))
        pipeline.ltrim(inbox(name), -conf.MAX_INBOX_MESSAGES, -1)
        pipeline.set(flag(name), 1, nx=True, ex=conf.DOORBELL_TTL_S)
    done = pipeline.execute(raise_on_error=False)
    errors = [result for result in done if isinstance(result, RedisError)]
    for name, is_first in zip(messages, done[2::3], strict=True):
        try:
            if is_first is True:
                call_worker(name)
        except RedisError as error:  # the others' workers are called all the same
            errors.append(error)
    if errors:
        raise errors[0]


def try_to_ring(name: str, messages: Sequence[bytes] = ()) -> bool:
    """Ring; return whether it worked. If not, the supervisor rings again."""
    return try_to_ring_all({name: messages})


def try_to_ring_all(messages: Mapping[str, Sequence[bytes]]) -> bool:
    """Ring for each queue; return whether it worked. If not, the supervisor rings again."""
    try:
        ring_all(messages)
    except Unreachable as error:
        logger.warning("cannot ring for %s (the supervisor will): %s", ", ".join(messages), error)
        return False
    return True


def ring_after_commit(*names: str) -> None:
    """Ring after the commit, or now outside a transaction; on failure the supervisor rings again.

    A transaction rings once, however often it asks, also if a savepoint that asked first is rolled back.
    """
    for name in names:
        asked = connections[DEFAULT_DB_ALIAS].run_on_commit
        earlier: Iterator[object] = (entry[1] for entry in reversed(asked))
        rings = (hook for hook in earlier if isinstance(hook, _Ring) and hook.name == name)
        same = next(rings, None)
        transaction.on_commit(_Ring(name, same.rung if same else []))


@dataclass(frozen=True, slots=True)
class _Ring:
    """Rings for a queue, unless another one of the transaction has; those share `rung`."""

    name: str
    rung: list[bool]

    def __call__(self) -> None:
        if not self.rung:
            self.rung.append(True)
            try_to_ring(self.name)


def put_back(name: str, messages: Sequence[bytes]) -> None:
    """Return taken messages to their inbox; keep trying while Redis is away."""
    give_up_at = time.monotonic() + conf.SEND_RETRY_FOR_S
    while not try_to_ring(name, messages):
        if time.monotonic() > give_up_at:
            logger.error("Redis does not take %d messages back to %s", len(messages), name)
            return
        time.sleep(conf.SEND_RETRY_INTERVAL_S)


def call_worker(name: str) -> None:
    """Enqueue the doorbell's job; the flag must be set. Raises RedisError."""
    function, arguments = handler_of(name)
    queue(name).enqueue_call(
        function,
        args=arguments,
        timeout=-1,
        result_ttl=0,
        failure_ttl=60,
        ttl=60,
        description=f"doorbell of {name}",
    )


def clear_doorbell(name: str) -> None:
    """Clear the doorbell: the next ring calls a worker. The caller must look once more afterwards."""
    with _breaker.asking():
        connection().delete(flag(name))


def take(name: str, limit: int, wait: float = 0) -> list[bytes]:
    """Take up to `limit` messages from an inbox; if it is empty, wait up to `wait` seconds for one."""
    into = inbox(name)
    with _breaker.asking():
        if not wait:
            return signing.accepted(name, as_messages(connection().lpop(into, limit)))
        popped = connection().blmpop(wait, 1, into, direction="LEFT", count=limit)
    return signing.accepted(name, as_messages(popped[1])) if popped else []


def waiting(names: Sequence[str]) -> list[str]:
    """Return the queues whose inbox is not empty; raise `Unreachable`."""
    with _breaker.asking():
        pipeline = connection().pipeline(transaction=False)
        for name in names:
            pipeline.llen(inbox(name))
        return [name for name, count in zip(names, pipeline.execute(), strict=True) if count]


def oldest(name: str) -> tuple[bytes | None, bool]:
    """Return the oldest message of an inbox, and whether Redis kept its data since the last call."""
    with _breaker.asking():
        pipeline = connection().pipeline(transaction=False)
        pipeline.lindex(inbox(name), 0)
        pipeline.set("sas:kept", 1, get=True)
        message, mark = pipeline.execute()
        return message, mark is not None


def held_by(worker: str) -> dict[int, int]:
    """Return the requests that an agent's worker holds, as step → attempt."""
    with _breaker.asking():
        notes = connection().hgetall(at_hand(worker))
    held = (HELD.fullmatch(b":".join(as_messages(pair))) for pair in notes.items())
    return {int(match[1]): int(match[2]) for match in held if match}


def as_messages(taken: object) -> list[bytes]:
    """Return a response of Redis as a list of messages."""
    return (
        [item for item in taken if isinstance(item, bytes)] if isinstance(taken, Sequence) else []
    )
