"""An agent that no worker serves is given no work, and nothing of that fails (P16)."""

from datetime import timedelta

import pytest

from orchestration import conf
from orchestration.models import Hold, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.models.hold import HoldCause
from orchestration.transitions.holds import hold, hold_unserved, unpark
from tests.support.engine import claimed, new_task, staff, states, step_of

pytestmark = pytest.mark.django_db
SILENT = timedelta(seconds=2 * conf.WORKER_DEAD_AFTER_S)  # longer than a living worker is


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()


def silence(queue):
    """Have the workers of a queue fall silent."""
    Worker.objects.filter(queue=queue).update(seen_at=DatabaseNow() - SILENT)


def holds():
    return list(Hold.objects.filter(until=None).values_list("agent", "cause"))


def test_steps_of_an_agent_without_workers_wait_and_then_continue():
    task = new_task()
    silence("greeter")
    hold_unserved()
    assert holds() == [("greeter", HoldCause.NO_WORKER)]
    assert claimed() == []
    assert states(task)["hello"] == "pending"
    assert step_of(task).failure_count == 0
    hold_unserved()
    assert len(holds()) == 1  # it is held once
    staff()
    hold_unserved()
    assert holds() == []
    unpark()
    assert [request.name for request in claimed()] == ["hello"]


def test_agent_with_one_worker_alive_is_served():
    silence("greeter")
    Worker.objects.create(instance="greeter-9", queue="greeter", host="here", pid=9)
    hold_unserved()
    assert holds() == []


def test_manual_hold_is_not_released_by_a_worker():
    hold(agent="greeter", cause=HoldCause.HAND, actor="ada", reason="the partner asked for it")
    staff()
    hold_unserved()
    assert holds() == [("greeter", HoldCause.HAND)]
    assert claimed() == []
