"""A service that closes connections which are idle, as most do after some seconds."""

import socket
import threading
from contextlib import contextmanager

import pytest

from drill.waiting import wait_for
from orchestration.agents.actions import action
from orchestration.agents.http import HttpAgent
from orchestration.agents.runner import Runtime
from orchestration.database import clock
from orchestration.messaging import queues
from orchestration.messaging.messages import Reply
from tests.support.messages import request

pytestmark = pytest.mark.django_db


class Courier(HttpAgent):
    name = "courier"
    base_url = ""

    @action
    async def write(self, call):
        return await self.post(call, "/", body={})


@contextmanager
def service(closed):
    """Answer one request on each connection, as one to keep; then close it while its client is idle."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        over = threading.Event()

        def serve():
            while not over.is_set():
                try:
                    client, _ = server.accept()
                except TimeoutError:
                    continue
                with client:
                    client.settimeout(10)
                    client.recv(10_000)
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                    wait_for(idle.is_set, "the worker is idle", 10)
                closed.set()

        idle = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], idle
        finally:
            over.set()
            idle.set()
            thread.join()


def test_connection_that_the_service_closed_while_idle_is_not_used(monkeypatch):
    closed = threading.Event()
    with service(closed) as (port, idle):
        monkeypatch.setattr(Courier, "base_url", f"http://127.0.0.1:{port}")
        runtime = Runtime(Courier("courier-1"))
        try:
            for step in (1, 2):
                asked = request(
                    step=step, action="write", complete_by=clock.now() + 60, call_timeout=60.0
                )
                queues.connection().rpush(queues.inbox("courier"), asked.dump())
                runtime.serve()
                idle.set()
                wait_for(closed.is_set, "the service has closed the connection", 10)
        finally:
            runtime.close()
    raw = queues.connection().lrange(queues.inbox(queues.SCHEDULER), 0, -1)
    replies = [Reply.parse(message) for message in raw]
    assert [(reply.outcome, reply.tries) for reply in replies] == [("done", 1)] * 2
