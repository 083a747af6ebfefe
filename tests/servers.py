"""The real Postgres and Redis that the tests run on, from the project's own wheels."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import redis

from drill.waiting import wait_for
from sasweb.stack import embedded, folders


@contextmanager
def servers() -> Iterator[None]:
    """Run Postgres and Redis where DATABASE_URL and REDIS_URL do not say they are elsewhere."""
    started = []
    folders.make_data_dir()
    if not os.environ.get("DATABASE_URL"):
        command = [*embedded.prepare_postgres(), "-c", "fsync=off", "-c", "full_page_writes=off"]
        started.append(_start(command))
        wait_for(_postgres_answers, "Postgres answers")
    if not os.environ.get("REDIS_URL"):
        started.append(_start(embedded.prepare_redis()))
        wait_for(_redis_answers, "Redis answers")
    try:
        yield
    finally:
        for process in started:
            process.send_signal(2)
        for process in started:
            process.wait(20)
        folders.remove_socket_dir()


def _start(command):
    with (folders.data_dir() / "servers.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, **folders.server_identity())


def _postgres_answers() -> bool:
    try:
        psycopg2.connect(dbname="postgres", user="postgres", host=str(folders.socket_dir())).close()
    except psycopg2.OperationalError:
        return False
    return True


def _redis_answers() -> bool:
    try:
        with redis.Redis.from_url(embedded.redis_url()) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
