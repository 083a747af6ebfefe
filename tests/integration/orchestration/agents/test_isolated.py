"""An isolated agent's process is killed while it has many calls: undoing their tasks leaves no effect."""

import asyncio
import os
import signal

import pytest

from drill.waiting import wait_for
from orchestration import registry
from orchestration.agents.actions import action
from orchestration.agents.http import HttpAgent
from orchestration.agents.performers import Performers
from orchestration.messaging.messages import Reply
from orchestration.models import Policy, Step, Task
from orchestration.payloads.placeholders import key
from orchestration.transitions.replies import record
from orchestration.transitions.undo import undo
from orchestration.workflows.step import Step as StepDeclaration
from orchestration.workflows.workflow import Workflow
from tests.support.engine import claimed, new_task, staff, sweep
from tests.support.operators import LEADER
from tests.support.sandbox import process, send
from tests.support.violations import violations

pytestmark = pytest.mark.django_db
MANY = 20


class Guest(HttpAgent):
    name = "greeter"
    isolated = True

    @action
    async def greet(self, call):
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})

    @action
    async def take_back(self, call):
        return await self.post(call, "/bench/undo", body=call.payload, expect={"effect": str})

    @action
    async def die(self, _call):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def service(tmp_path, monkeypatch):
    step = StepDeclaration(
        name="call", agent="greeter", action="greet", undo="take_back",
        undo_request={"key": key("call")},
    )  # fmt: skip
    monkeypatch.setitem(registry.workflows, "one", Workflow(name="one", steps=[step]))
    Policy.objects.filter(agent="greeter").update(
        window=1000, breaker_calls=200, breaker_failures=200, tries=1, call_timeout=9.0,
        backoff=0.01, backoff_cap=0.01,
    )  # fmt: skip
    staff()
    with process(tmp_path) as (_, port):
        monkeypatch.setattr(Guest, "base_url", f"http://127.0.0.1:{port}", raising=False)
        yield port


def standing(port) -> int:
    """Return how many effects stand at the service."""
    effects = [entry["effect"] for entry in send(port, "GET", "/ledger?limit=1000")[1]["entries"]]
    return effects.count("call") - effects.count("void")


async def performed(requests, during) -> list[Reply]:
    """Have requests performed in one process, as a worker does, and something done meanwhile."""
    performers = Performers(Guest("agent-1"))
    try:
        calls = [asyncio.create_task(performers.answer(request)) for request in requests]
        await during(performers)
        return [Reply.parse(raw) for raw in await asyncio.gather(*calls) if raw]
    finally:
        await performers.close()


def test_what_was_done_as_the_process_died_is_undone(service):
    """Each call has its effect; made anew, it meets a service that has too much to do."""
    tasks = [new_task(workflow="one") for _ in range(MANY)]
    ends = (
        {"fault": "timeout_after_effect", "seconds": 9},
        {"fault": "too_many_requests", "retry_after": 1},
    )
    faults = [
        {"partner": "bench", "action": "*", "key": f"{task.id}:*", "times": 1, **end}
        for task in tasks
        for end in ends
    ]
    send(service, "PUT", "/faults", body={"faults": faults, "latency": {"bench": 0}})
    requests = claimed()
    assert len(requests) == MANY

    async def kill(performers):
        await asyncio.to_thread(wait_for, lambda: standing(service) == MANY, "all is done", 9)
        await performers.answer(requests[0].altered(action="die"))

    async def nothing(_performers):
        pass

    record(asyncio.run(performed(requests, kill)))
    assert set(Step.objects.values_list("error_code", "in_doubt")) == {("http_429", True)}
    for task in tasks:
        assert undo(task.id, actor="olga", reason="cancelled") is None

    def all_undone():
        staff()
        sweep(LEADER)
        Step.objects.filter(run_after__isnull=False).update(run_after=None)
        record(asyncio.run(performed(claimed(), nothing)))
        return not Task.objects.exclude(state="undone").exists()

    wait_for(all_undone, "all are undone", 60)
    assert standing(service) == 0
    assert violations() == []
