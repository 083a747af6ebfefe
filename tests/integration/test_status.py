"""Status messages: numbered, in the transaction, taken once (P27)."""

import pytest

from orchestration import registry, status
from orchestration.models import StatusMessage
from orchestration.transitions import record, resubmit
from tests.engine import claimed, in_error, new_task, reply_to, run_to_end

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(monkeypatch):
    messages = []
    monkeypatch.setitem(registry.receivers, "shop", messages.extend)
    return messages


def test_the_story_of_a_task_is_told_in_order(told):
    task = new_task("7", reply_to="shop")
    step = in_error(task)
    resubmit(step.id, attempt=step.attempt, actor="olga", reason="mended")
    run_to_end(task)
    assert status.deliver("shop", 100) == 4
    assert [(one.number, one.kind) for one in told] == [
        (1, "received"),
        (2, "failed"),
        (3, "resumed"),
        (4, "completed"),
    ]
    assert {one.reference for one in told} == {"7"}
    assert not StatusMessage.objects.exists()
    assert status.deliver("shop", 100) == 0


def test_a_receiver_that_fails_is_told_again(monkeypatch, told):
    new_task(reply_to="shop")

    def broken(_):
        raise RuntimeError

    monkeypatch.setitem(registry.receivers, "shop", broken)
    with pytest.raises(RuntimeError):
        status.deliver("shop", 100)
    assert StatusMessage.objects.count() == 1


def test_recording_says_whom_to_ring_for():
    new_task(reply_to="shop")
    new_task()
    record([reply_to(request) for request in claimed()])
    recorded = record([reply_to(request) for request in claimed()])
    assert recorded.applications == {"shop"}
