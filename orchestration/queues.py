"""Messages and doorbells on Redis. `agent_inbox`, `jobs`, `workers`, `sounding` know RQ or Redis, too.

Nothing here is the truth: a lost request or reply costs its step's deadline, a lost doorbell until
the supervisor rings again.

- An *inbox* is a list of messages to the workers of one queue: requests to an agent, replies to the
  schedulers, and to anybody "look": there is work in the state store.
- A *doorbell* is an RQ job that says "there is work" on one queue. Its flag stays set while a
  worker is called or attends, so that nobody rings twice; who attends takes what comes into the
  inbox at once, without a job for each. The worker clears the flag *before* its last look. It also
  expires by itself, so that under lasting load further workers are called to help.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import django_rq
from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as Late
from redis.retry import Retry
from rq import Queue

from . import conf

logger = logging.getLogger(__name__)

SUBMISSION = "submission"
SCHEDULER = "scheduler"
ALERTS = "alerts"
AUDIT = "audit"
PUSH = "push"
STATUS_PREFIX = "status."
# A connection does not send the client's version to Redis: reading it takes 2 ms and 2 MB each time.
QUIETLY: dict[str, Any] = {"driver_info": None}
LOOK = b"look"  # a message that only says: look at the state store

# What each queue's doorbell runs; `workers` refuses every other function.
ANSWERS = {
    SUBMISSION: "orchestration.jobs.take_submissions",
    SCHEDULER: "orchestration.jobs.schedule",
    ALERTS: "orchestration.jobs.send_notices",
    AUDIT: "orchestration.jobs.run_audit",
    PUSH: "orchestration.jobs.push_status",
}
CALL_AGENT = "orchestration.jobs.call_agent"
DELIVER_STATUS = "orchestration.jobs.deliver_status"


class Unreachable(Exception):
    """Redis does not answer. Orders are safe; the supervisor rings again when it is back."""


class Silent(Unreachable):
    """Redis took too long a moment ago, and was not asked again."""


class Patience:
    """One client's patience with a Redis that hangs: not everything that asks waits for it.

    After a command that took too long all others fail at once, for `conf.REDIS_SILENCE` seconds. Then
    one asks first. A Redis that refuses connections says so at once, and is always asked.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._silent_until: float | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask Redis in this context; raises `Unreachable` for all that goes wrong with it."""
        with self._lock:
            now = time.monotonic()
            if self._silent_until is not None:
                if now < self._silent_until:
                    raise Silent("Redis did not answer a moment ago")
                self._silent_until = now + conf.REDIS_SILENCE  # this one asks for all
        try:
            yield
        except Late as error:
            self._silent_until = time.monotonic() + conf.REDIS_SILENCE
            raise Unreachable(str(error)) from error
        except RedisError as error:
            self._silent_until = None
            raise Unreachable(str(error)) from error
        self._silent_until = None


def answer_to(queue: str) -> tuple[str, tuple[str, ...]]:
    """Return the function that answers a queue's doorbell, and its arguments."""
    if queue in ANSWERS:
        return ANSWERS[queue], ()
    if queue.startswith(STATUS_PREFIX):
        return DELIVER_STATUS, (queue.removeprefix(STATUS_PREFIX),)
    return CALL_AGENT, (queue,)


def of_application(name: str) -> str:
    """Return the queue whose workers see to an application's status messages.

    Those of applications outside our processes are pushed, or lie there until they are fetched.
    """
    return STATUS_PREFIX + name if STATUS_PREFIX + name in settings.RQ_QUEUES else PUSH


def inbox(queue: str) -> str:
    """Return the list of messages to a queue's workers."""
    return f"sas:inbox:{queue}"


def flag(queue: str) -> str:
    """Return the key that says that a queue's doorbell rings, or that a worker attends."""
    return f"sas:ringing:{queue}"


def at_hand(worker: str) -> str:
    """Return the key of what an agent's worker has taken and not answered, should it die."""
    return f"sas:at:{worker}"


def reports(agent: str) -> str:
    """Return the key of what an agent's workers report to one another."""
    return f"sas:reports:{agent}"


def connection() -> Redis:
    """Return this process's client: short timeouts, no silent retries (they send a job twice)."""
    # Two threads must not make one each: the client that nobody keeps closes its connections, also
    # those that its maker is using.
    with _connecting:
        return _connection()


_connecting = Lock()
_patience = Patience()


@cache
def _connection() -> Redis:
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=conf.REDIS_TIMEOUT,
        socket_connect_timeout=conf.REDIS_TIMEOUT,
        retry=Retry(NoBackoff(), 0),
        **QUIETLY,
    )


def worker_connection() -> Redis:
    """Return a client for a worker, which waits on its queue: RQ sets its time-outs."""
    return Redis.from_url(settings.REDIS_URL, retry=Retry(NoBackoff(), 0), **QUIETLY)


def queue(name: str, redis: Redis | None = None) -> Queue:
    """Return an RQ queue by its name in RQ_QUEUES."""
    return django_rq.get_queue(name, connection=redis or connection(), commit_mode="auto")


def ring(name: str, messages: Sequence[bytes] = ()) -> None:
    """Put messages into a queue's inbox and have a worker look; raise `Unreachable`."""
    if name not in settings.RQ_QUEUES:
        raise Unreachable(f"there is no queue {name!r} in RQ_QUEUES")
    with _patience.asking():
        pipeline = connection().pipeline(transaction=False)
        pipeline.rpush(inbox(name), *(messages or [LOOK]))
        pipeline.ltrim(inbox(name), -conf.INBOX_LIMIT, -1)
        pipeline.set(flag(name), 1, nx=True, ex=conf.FLAG_LIFE)
        if pipeline.execute()[-1]:
            call_worker(name)


def try_to_ring(name: str, messages: Sequence[bytes] = ()) -> bool:
    """Ring; say whether it worked. For whoever must go on in any case: the supervisor rings again."""
    try:
        ring(name, messages)
    except Unreachable as error:
        logger.warning("cannot ring for %s (the supervisor will): %s", name, error)
        return False
    return True


def put_back(name: str, messages: Sequence[bytes]) -> None:
    """Return messages that were taken to their inbox; keep them while Redis is away."""
    give_up_at = time.monotonic() + conf.SEND_PATIENCE
    while not try_to_ring(name, messages):
        if time.monotonic() > give_up_at:
            logger.error("Redis does not take %d messages back to %s", len(messages), name)
            return
        time.sleep(conf.SEND_PAUSE)


def call_worker(name: str) -> None:
    """Put the doorbell's job on the queue, whose flag is set; raises RedisError."""
    function, arguments = answer_to(name)
    queue(name).enqueue_call(
        function,
        args=arguments,
        timeout=-1,
        result_ttl=0,
        failure_ttl=60,
        ttl=60,
        description=f"doorbell of {name}",
    )


def leave(name: str) -> None:
    """Clear the doorbell: whoever rings from now on calls a worker. Look once more after it."""
    with _patience.asking():
        connection().delete(flag(name))


def take(name: str, limit: int, wait: float = 0) -> list[bytes]:
    """Take up to `limit` messages from an inbox; if it is empty, wait up to `wait` seconds for one."""
    into = inbox(name)
    with _patience.asking():
        messages = as_messages(connection().lpop(into, limit))
        if not messages and wait and (first := connection().blpop([into], wait)):
            messages = as_messages(first[1:])
    return messages


def waiting(names: Sequence[str]) -> list[str]:
    """Return those of the queues whose inbox is not empty; raise `Unreachable`."""
    with _patience.asking():
        pipeline = connection().pipeline(transaction=False)
        for name in names:
            pipeline.llen(inbox(name))
        return [name for name, count in zip(names, pipeline.execute(), strict=True) if count]


def oldest(name: str) -> tuple[bytes | None, bool]:
    """Return the oldest message of an inbox, and whether Redis still has what it had at the last look."""
    with _patience.asking():
        pipeline = connection().pipeline(transaction=False)
        pipeline.lindex(inbox(name), 0)
        pipeline.set("sas:kept", 1, get=True)
        message, kept = pipeline.execute()
        return message, kept is not None


def held_by(worker: str) -> dict[int, int]:
    """Return the requests that an agent's worker has taken and not answered: step → attempt."""
    with _patience.asking():
        found = connection().hgetall(at_hand(worker))
    return {int(step): int(attempt) for step, attempt in found.items()}


def forget(worker: str) -> None:
    """Remove the note of what an agent's worker has taken, which is dealt with."""
    with _patience.asking():
        connection().delete(at_hand(worker))


def as_messages(taken: object) -> list[bytes]:
    """Return what Redis gave as messages."""
    return (
        [item for item in taken if isinstance(item, bytes)] if isinstance(taken, Sequence) else []
    )
