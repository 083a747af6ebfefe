"""Several workers of one agent: each takes what it has free slots for, and leaves the rest (P2, P16)."""

import asyncio
import threading
from contextlib import contextmanager

import pytest
from django.core.exceptions import ImproperlyConfigured

from drill.waiting import wait_for
from orchestration.agents.actions import action
from orchestration.agents.base import Agent
from orchestration.agents.runner import Runtime
from orchestration.database import clock
from orchestration.messaging import queues
from orchestration.messaging.messages import Reply
from orchestration.models import Policy
from sasweb import env
from tests.support.messages import left, request

pytestmark = pytest.mark.django_db
NAME = "greeter"  # a queue of the tests' agents


class Clerk(Agent):
    name = NAME
    slots = 3

    def __init__(self, instance):
        super().__init__(instance)
        self.at_once = self.most = 0
        self.over = asyncio.Event()

    @action
    async def wait(self, call):
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.over.wait()
        self.at_once -= 1
        return {}

    @action
    async def write(self, call):
        return {}


def post(count, action="wait"):
    requests = [
        request(step=step, action=action, complete_by=clock.now() + 60, call_timeout=60.0).dump()
        for step in range(1, count + 1)
    ]
    queues.ring(NAME, requests)


def answered():
    raw = queues.connection().lrange(queues.inbox(queues.SCHEDULER), 0, -1)
    return [(reply.step, reply.by) for reply in map(Reply.parse, raw)]


@contextmanager
def at_work(name):
    """Have a worker serve the inbox in a thread; let its calls end, and stop it, at the end."""
    clerk = Clerk(name)
    runtime = Runtime(clerk)
    serving = threading.Thread(target=runtime.serve)
    serving.start()
    try:
        yield clerk, lambda: runtime.loop.call_soon_threadsafe(clerk.over.set)
    finally:
        runtime.stop()
        runtime.loop.call_soon_threadsafe(clerk.over.set)
        serving.join(20)
        runtime.close()
        assert not serving.is_alive()


def test_worker_takes_no_more_than_its_slots():
    post(8)
    with at_work("clerk-1") as (clerk, let_end):
        wait_for(lambda: clerk.at_once == 3, "it has its slots full")
        assert left(NAME) == 5
        let_end()
        wait_for(lambda: len(answered()) == 8, "it has done the rest as slots became free")
        assert clerk.most == 3
    assert sorted(step for step, _ in answered()) == list(range(1, 9))


def test_requests_left_by_a_full_worker_go_to_another():
    post(5)
    with at_work("clerk-1") as (first, _):
        wait_for(lambda: first.at_once == 3, "the first has its slots full")
        # the doorbell is given away: another worker is called, and by what comes later, too
        wait_for(lambda: queues.queue(NAME).count == 2, "another worker is called")
        with at_work("clerk-2") as (second, _):
            wait_for(lambda: second.at_once == 2, "the second has the rest")
            assert (first.at_once, left(NAME)) == (3, 0)


def test_full_worker_stops_and_returns_the_rest():
    post(5)
    with at_work("clerk-1") as (clerk, _):
        wait_for(lambda: clerk.at_once == 3, "it has its slots full")
    assert len(answered()) == 3
    assert left(NAME) == 2
    assert queues.held_by("clerk-1") == {}


def test_slots_are_a_setting(settings):
    settings.AGENT_SLOTS = {NAME: 1}
    post(2)
    with at_work("clerk-1") as (clerk, let_end):
        wait_for(lambda: clerk.at_once == 1, "it has its slot full")
        let_end()
        wait_for(lambda: len(answered()) == 2, "all is done")
        assert clerk.most == 1


def test_slots_cost_no_calls_with_the_default_window():
    assert Agent.slots >= Policy._meta.get_field("window").default


def test_slots_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("AGENT_SLOTS", "payment=20, stock=5")
    assert env.numbers("AGENT_SLOTS") == {"payment": 20, "stock": 5}
    monkeypatch.setenv("AGENT_SLOTS", "payment")
    with pytest.raises(ImproperlyConfigured, match="'payment' is not a name with a whole number"):
        env.numbers("AGENT_SLOTS")
