"""Status messages: numbered, in the transaction, taken once (P27)."""

import pytest
from django.db import Error, connection

from orchestration import api, registry, status
from orchestration.models import Alert, StatusMessage
from orchestration.sql import is_unavailable
from orchestration.transitions import record, resubmit
from tests.database import writes_fail
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
        (2, "action_needed"),
        (3, "resumed"),
        (4, "completed"),
    ]
    assert {one.reference for one in told} == {"7"}
    assert not StatusMessage.objects.exists()
    assert status.deliver("shop", 100) == 0


def test_one_that_its_receiver_cannot_take_is_set_aside_and_holds_up_no_other(monkeypatch):
    told = []

    def receiver(messages):
        if any(one.reference == "bad" for one in messages):
            raise ValueError("what is this?")
        told.extend(one.reference for one in messages)

    monkeypatch.setitem(registry.receivers, "shop", receiver)
    for reference in ("before", "bad", "after"):
        new_task(reference, reply_to="shop")
    assert status.deliver("shop", 100) == 3
    assert told == ["before", "after"]
    left = StatusMessage.objects.get()
    assert (left.task.reference, left.reason) == ("bad", "ValueError: what is this?")
    assert Alert.objects.get().fingerprint == "status/shop"
    assert status.deliver("shop", 100) == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("code", ["57P01", "25006"])
def test_with_the_database_unavailable_nothing_is_set_aside(code):
    new_task(reply_to="shop")
    with (
        writes_fail("orchestration_statusmessage", "DELETE", code, times=1),
        pytest.raises(Error) as raised,
    ):
        status.deliver("shop", 100)
    assert is_unavailable(raised.value)
    connection.close()
    assert StatusMessage.objects.get().refused_at is None
    assert status.deliver("shop", 100) == 1


def test_the_shop_ignores_what_is_not_about_orders():
    new_task("not a UUID", reply_to="shop")
    assert status.deliver("shop", 100) == 1
    assert not StatusMessage.objects.exists()


def test_nobody_can_be_told_who_does_not_listen():
    with pytest.raises(LookupError, match="did you mean 'shop'"):
        api.submit("greet", reference="1", data={"name": "Ada"}, reply_to="shopp")


def test_recording_says_whom_to_ring_for():
    new_task(reply_to="shop")
    new_task()
    record([reply_to(request) for request in claimed()])
    recorded = record([reply_to(request) for request in claimed()])
    assert recorded.applications == {"shop"}
