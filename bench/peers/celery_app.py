"""The three calls as a chain of Celery tasks over Redis. A chain is not durable.

`python -m celery --app bench.peers.celery_app worker` serves it.
"""

import os
from functools import cache

import redis
import urllib3  # type: ignore[import-not-found]
from celery import Celery  # type: ignore[import-not-found]

SOCKET = os.environ["REDIS_SOCKET"]
DONE = "done"  # the list that each chain's last task puts its reference on

app = Celery("bench", broker=f"redis+socket://{SOCKET}?virtual_host=1")
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_pool_limit=50,  # as many as green threads, as the docs advise
    task_acks_late=False,  # the default; late showed no gain, see README.md
    task_ignore_result=True,
    worker_disable_rate_limits=True,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)
http = urllib3.connection_from_url(os.environ["SANDBOX_URL"], maxsize=200, retries=False)


@cache
def done() -> "redis.Redis":
    """Return this process's Redis client for the list of ended chains."""
    return redis.Redis(unix_socket_path=SOCKET, db=2)


@app.task(name="call")  # type: ignore[untyped-decorator]
def call(order: str, number: int) -> None:
    """Make one remote call on a persistent connection."""
    answer = http.request(
        "POST",
        "/bench/calls",
        json={"order": order},
        headers={"Idempotency-Key": f"{order}:{number}"},
    )
    if answer.status != 201:
        raise RuntimeError(answer.data)


@app.task(name="last_call")  # type: ignore[untyped-decorator]
def last_call(order: str) -> None:
    """Make the third call and record the chain's end by one command, without a result backend."""
    call.run(order, 3)
    done().rpush(DONE, order)
