"""A worker whose log blocks does nothing more: that is shown, although its process lives."""

import fcntl
import os
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import pytest

from drill.waiting import wait_for
from orchestration.database import sql
from orchestration.messaging import queues
from orchestration.models import Alert, Worker
from tests.support.together import database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]
MODULE = "tests.integration.orchestration.workers.deaf"
GARBAGE = b"no request"  # whose refusal is logged


@contextmanager
def full_pipe():
    """Give the end of a pipe that takes no more, and a function that empties it."""
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(into, False)
    with suppress(BlockingIOError):
        while True:
            os.write(into, b"x" * 4096)
    os.set_blocking(into, True)
    yield into, lambda: os.read(out, 1 << 20)
    os.close(out)


@contextmanager
def worker(queue, **environment):
    """Run a process that cannot write its log."""
    known = {**os.environ, "DATABASE_URL": database_url(), **environment}
    command = (sys.executable, "-m", MODULE, queue)
    with full_pipe() as (into, empty), subprocess.Popen(command, env=known, stderr=into) as running:
        os.close(into)
        try:
            wait_for(lambda: Worker.objects.filter(pid=running.pid), "it is there")
            yield empty
        finally:
            running.kill()


def is_silent(queue, seconds):
    (age,) = sql.run(
        "SELECT extract(epoch FROM clock_timestamp() - seen_at)::float8 FROM orchestration_worker"
        " WHERE queue = %(queue)s",
        {"queue": queue},
    )[0]
    return age > seconds


@pytest.mark.parametrize("queue", ["greeter", queues.SCHEDULER])
def test_worker_that_cannot_log_falls_silent_until_it_can(queue):
    with worker(queue, STALLED_AFTER_S="3") as empty:
        queues.ring(queue, [GARBAGE])
        wait_for(lambda: is_silent(queue, 2), "it reports itself no more")
        over = threading.Event()

        def read():
            while not over.is_set():
                empty()

        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        wait_for(lambda: not is_silent(queue, 1), "it is back")
        over.set()


def test_blocked_log_of_an_agent_is_an_alert_before_it_is_a_line():
    with worker("greeter", STALLED_AFTER_S="60"):
        queues.ring("greeter", [GARBAGE])
        alert = wait_for(lambda: Alert.objects.filter(closed_at=None).first(), "an alert is open")
    assert alert.fingerprint.startswith("blocked_loop/greeter/")
