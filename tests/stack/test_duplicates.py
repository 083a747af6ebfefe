"""Every message on every queue is delivered three times, with the same outcome."""

import pytest

from drill.process import Process, free_port
from drill.proxy import Proxy, Spoil, is_push, redis_command
from drill.stack import Stack
from drill.verdict import audited, check
from drill.waiting import wait_for
from sasweb.stack import embedded, folders

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]


@pytest.fixture
def redis_socket():
    folder = folders.data_dir() / "duplicates-redis"
    program = embedded.prepare_redis()[0]
    folders.make(folder)
    socket = folder / "redis.sock"
    command = [
        program,
        "--port",
        "0",
        "--unixsocket",
        str(socket),
        "--save",
        "",
        "--dir",
        str(folder),
    ]
    process = Process(command, folder / "redis.log")
    wait_for(socket.exists, "Redis listens")
    yield socket
    process.end()


def test_messages_delivered_three_times_have_one_effect(redis_socket):
    port = free_port()
    spoil = Spoil(act="repeat", chosen=is_push, times=3)
    stack = Stack("duplicates", REDIS_URL=f"redis://127.0.0.1:{port}/0")
    with Proxy(port, redis_socket, spoil, redis_command), audited(stack):
        stack.policy(time_allowed=5, call_timeout=2, window=20)
        stack.sandbox("/faults", {"latency": {"*": 0.03}}, "PUT")
        orders = stack.place(300)
        stack.quiet()
        check(stack, orders)
        assert 2 * spoil.struck > 300
        refused = "SELECT count(*) FROM orchestration_event WHERE kind = 'refused'"
        assert stack.count(refused) > 300  # they arrived, and were refused
        twice = (
            "SELECT count(*) FROM orchestration_attempt a"
            " JOIN orchestration_step s ON s.id = a.step_id"
            " JOIN orchestration_task t ON t.id = s.task_id"
            " WHERE a.outcome = 'done' AND t.reference = ANY(%s)"
        )
        assert stack.count(twice, orders) == 5 * len(orders)
