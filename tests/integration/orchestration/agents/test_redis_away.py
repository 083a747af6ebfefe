"""A worker of an agent whose Redis is away for a moment, in the middle of a call."""

import asyncio
import threading

import pytest

from drill.waiting import wait_for
from orchestration.agents.actions import action
from orchestration.agents.base import Agent
from orchestration.agents.runner import Runtime
from orchestration.database import clock
from orchestration.messaging import queues
from orchestration.messaging.messages import Reply
from tests.support.messages import request

pytestmark = pytest.mark.django_db


class Clerk(Agent):
    name = "clerk"
    begun = False

    def __init__(self, instance):
        super().__init__(instance)
        self.over = asyncio.Event()

    @action
    async def wait(self, call):
        self.begun = True
        await self.over.wait()
        return {}

    @action
    async def write(self, call):
        return {}


def post(**fields):
    asked = request(complete_by=clock.now() + 60, call_timeout=60.0, **fields)
    queues.connection().rpush(queues.inbox("clerk"), asked.dump())


def answered():
    raw = queues.connection().lrange(queues.inbox(queues.SCHEDULER), 0, -1)
    return [Reply.parse(message).step for message in raw]


def test_worker_takes_new_requests_while_a_call_continues():
    clerk = Clerk("clerk-1")
    runtime = Runtime(clerk)
    post(step=1, action="wait")
    serving = threading.Thread(target=runtime.serve)
    serving.start()
    try:
        wait_for(lambda: clerk.begun, "the call is under way", 10)
        queues.connection().client_kill_filter(_type="normal", skipme=True)
        post(step=2, action="write")
        wait_for(lambda: answered() == [2], "what came after that is answered", 10)
    finally:
        runtime.loop.call_soon_threadsafe(clerk.over.set)
        serving.join(20)
        runtime.close()
    assert not serving.is_alive()


def test_connection_that_was_closed_between_two_doorbells_is_replaced(caplog):
    runtime = Runtime(Clerk("clerk-1"))
    try:
        for step in (1, 2, 3):
            post(step=step, action="write")
            runtime.serve()
            assert answered() == [*range(1, step + 1)]
            queues.connection().client_kill_filter(_type="normal", skipme=True)
    finally:
        runtime.close()
    assert not caplog.records
