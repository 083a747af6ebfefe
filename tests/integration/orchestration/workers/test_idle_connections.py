"""Connections that a server closes while they are idle cost nothing: neither time, nor a failure."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager

import pytest

from drill.waiting import wait_for
from orchestration import conf
from orchestration.messaging import queues
from orchestration.models import Worker
from tests.support.database import another
from tests.support.engine import new_task
from tests.support.receiver import receiving
from tests.support.serving import serve
from tests.support.together import database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]
SERVED = ("scheduler", "greeter")
TASKS = 3


@contextmanager
def workers(count, service, log):
    """Run processes that serve the queues; all they log goes to a file."""
    known = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    known |= {"DATABASE_URL": database_url(), "SANDBOX_PORT": str(service.port)}
    command = (sys.executable, "manage.py", "work", *SERVED)
    with ExitStack() as stack, log.open("w") as output:
        running = [
            stack.enter_context(subprocess.Popen(command, env=known, stderr=output, stdout=output))
            for _ in range(count)
        ]
        try:
            wait_for(lambda: Worker.objects.count() == count * len(SERVED), "all are there")
            yield
        finally:
            for process in running:
                process.send_signal(signal.SIGTERM)


@contextmanager
def redis_timeout(seconds):
    redis = queues.connection()
    redis.config_set("timeout", seconds)
    try:
        yield
    finally:
        redis.config_set("timeout", 0)


def only_waiting():
    """Return whether each client of Redis but this one waits for a doorbell, the others being closed.

    A client that waits for a message of its inbox belongs to a job, whose session with Postgres is in use.
    """
    redis = queues.connection()
    mine = str(redis.client_id())
    clients = [other for other in redis.client_list() if other["id"] != mine]
    return all("b" in other["flags"] and other["cmd"] != "blmpop" for other in clients)


def close_idle_sessions():
    """End each idle session of the tests' database but this test's own."""
    with another() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'idle'"
            " AND datname = current_database() AND pid NOT IN (pg_backend_pid(), %s)",
            [own_session()],
        )


def own_session():
    from django.db import connection

    connection.ensure_connection()
    return connection.connection.info.backend_pid


def seconds_of_a_task():
    """Have the workers process a task; return what that took."""
    task = new_task()
    queues.ring(queues.SCHEDULER)
    return seconds_until_processed(task)


def seconds_until_processed(task):
    def ended():
        task.refresh_from_db()
        return task.ended_at

    wait_for(ended, "the task has ended", 40)
    assert task.state == "processed"
    return (task.ended_at - task.created_at).total_seconds()


@pytest.mark.parametrize("count", [1, 2])
def test_redis_that_closes_idle_connections_delays_nothing(tmp_path, count):
    log = tmp_path / "log"
    with receiving() as service, workers(count, service, log), redis_timeout(1):
        service.answers, service.body = [200], b'{"id": "g1", "effect": "none"}'
        took = []
        for _ in range(TASKS):
            wait_for(only_waiting, "Redis has closed what is idle")
            close_idle_sessions()
            took.append(seconds_of_a_task())
    assert max(took) < conf.DOORBELL_TTL_S
    assert "must wait" not in log.read_text()


@pytest.mark.parametrize("count", [1, 2])
def test_doorbell_that_is_lost_with_its_connection_rings_again(tmp_path, count):
    """Redis may close a connection as it hands over the job; then only the doorbell's flag is left."""
    redis = queues.connection()
    with receiving() as service, workers(count, service, tmp_path / "log"):
        service.answers, service.body = [200], b'{"id": "g1", "effect": "none"}'
        redis.set(queues.flag(queues.SCHEDULER), 1)
        task = new_task()
        redis.client_kill_filter(_type="normal", skipme=True)
        assert seconds_until_processed(task) < conf.DOORBELL_TTL_S


def test_job_that_loses_redis_leaves_the_doorbell_free(caplog):
    """The next ring calls a worker at once, not when the doorbell's flag has expired."""
    redis = queues.connection()

    def cut():
        wait_for(lambda: "blmpop" in {peer["cmd"] for peer in redis.client_list()}, "it waits", 10)
        redis.client_kill_filter(_type="normal", skipme=True)

    queues.ring("greeter")
    cutting = threading.Thread(target=cut)
    cutting.start()
    serve("greeter")
    cutting.join()
    assert "queue greeter must wait" in caplog.text
    assert not redis.exists(queues.flag("greeter"))
