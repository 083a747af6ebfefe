"""A canary task goes through all parts, and says which it waits for; no service hears of it."""

import asyncio
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from orchestration import registry, submission
from orchestration.agents.base import Agent
from orchestration.cluster import heartbeat
from orchestration.cluster.leader_election import NAMES
from orchestration.models import Gate, Lease, Submission, Task, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.monitoring import canary
from orchestration.states import GateState
from orchestration.transitions.claim import claim
from orchestration.transitions.holds import hold, release
from orchestration.transitions.replies import record
from tests.support.engine import staff

pytestmark = pytest.mark.django_db


class Deaf(Agent):
    name = "deaf"


def carried_out():
    """Have the agents perform what a scheduler claims; return the replies."""
    requests = claim(sorted(registry.agents), "scheduler-1").requests
    return [
        asyncio.run(registry.agents[agent]("test").perform(request))
        for agent, batch in requests.items()
        for request in batch
    ]


def test_canary_waits_for_each_part_in_turn():
    staff()
    reference = canary.send()
    assert canary.waits_for(reference) == ["submission"]
    submission.take(10)
    assert canary.waits_for(reference) == ["scheduler"]
    replies = carried_out()
    assert canary.waits_for(reference) == sorted(registry.agents)
    record(replies[1:])
    assert len(canary.waits_for(reference)) == 1
    record(replies[:1])
    assert canary.waits_for(reference) == []
    assert Task.objects.get(reference=reference).state == "processed"


@pytest.mark.parametrize("absent", ["supervisor", "housekeeper"])
def test_command_names_the_leader_that_is_missing(absent):
    for queue in canary.unserved():
        Worker.objects.create(instance=queue, queue=queue, host="here", pid=1)
    Lease.objects.update(holder="x-1", expires_at=DatabaseNow() + timedelta(seconds=9))
    Lease.objects.filter(name=absent).update(holder="")
    with pytest.raises(CommandError, match=f"^no {absent} leads$"):
        call_command("canary")


def test_agents_all_answer_the_canary_themselves():
    assert {step.agent for step in registry.workflows[canary.WORKFLOW].steps} == set(
        registry.agents
    )
    assert Deaf.actions()["canary"] is Agent.canary  # there is nothing to write for it


def test_canary_goes_before_waiting_tasks():
    canary.send()
    assert Submission.objects.get().priority == canary.FIRST


def test_canary_names_its_obstacle():
    assert canary.closed() == []
    Gate.objects.filter(agent="payment").update(state=GateState.OPEN, probe_at=DatabaseNow())
    held = hold(agent="shipping", actor="olga", reason="they move")
    assert canary.closed() == [
        "the circuit breaker of payment, which is not closed",
        "the hold of agent shipping",
    ]
    Gate.objects.update(state=GateState.CLOSED, probe_at=None)
    release(held.id, actor="olga", reason="they have moved")
    assert canary.closed() == []


def test_worker_from_before_a_start_does_not_count():
    heartbeat.report("scheduler")
    began = Lease.objects.values_list(DatabaseNow(), flat=True).first()
    assert "scheduler" not in canary.unserved()
    assert "scheduler" in canary.unserved(began)


def test_leader_counts_once_it_has_swept():
    assert canary.missing_leaders() == list(NAMES)
    Lease.objects.update(holder="supervisor-1", expires_at=DatabaseNow() + timedelta(seconds=9))
    assert canary.missing_leaders() == []
    began = Lease.objects.values_list(DatabaseNow(), flat=True).first()
    assert canary.missing_leaders(began) == list(NAMES)
    Lease.objects.update(swept_at=DatabaseNow())
    assert canary.missing_leaders(began) == []
