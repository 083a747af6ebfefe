"""An agent that no worker serves is given no work, and nothing of that fails (P16)."""

from datetime import timedelta

import pytest

from orchestration import conf
from orchestration.models import Hold, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.models.hold import Cause
from orchestration.transitions.holds import hold, hold_unserved, let_go
from tests.engine import claimed, new_task, staff, states, step_of

pytestmark = pytest.mark.django_db
SILENT = timedelta(seconds=2 * conf.ALIVE)  # longer than a living worker is


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()


def silence(queue):
    """Have the workers of a queue fall silent."""
    Worker.objects.filter(queue=queue).update(seen_at=DatabaseNow() - SILENT)


def holds():
    return list(Hold.objects.filter(until=None).values_list("agent", "cause"))


def test_while_no_worker_serves_it_its_steps_wait_and_then_go_on():
    task = new_task()
    silence("greeter")
    hold_unserved()
    assert holds() == [("greeter", Cause.NO_WORKER)]
    assert claimed() == []
    assert states(task)["hello"] == "pending"
    assert step_of(task).failure_count == 0
    hold_unserved()
    assert len(holds()) == 1  # it is held once
    staff()
    hold_unserved()
    assert holds() == []
    let_go()
    assert [request.name for request in claimed()] == ["hello"]


def test_an_agent_with_one_of_its_workers_alive_is_served():
    silence("greeter")
    Worker.objects.create(instance="greeter-9", queue="greeter", host="here", pid=9)
    hold_unserved()
    assert holds() == []


def test_a_hold_by_a_person_is_not_released_by_a_worker():
    hold(agent="greeter", cause=Cause.HAND, actor="ada", reason="the partner asked for it")
    staff()
    hold_unserved()
    assert holds() == [("greeter", Cause.HAND)]
    assert claimed() == []
