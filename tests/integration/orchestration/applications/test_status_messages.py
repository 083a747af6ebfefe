"""Status messages: numbered, in the transaction, taken once (P27)."""

from datetime import timedelta

import pytest
from django.db import Error, connection
from django.db.models import F

from orchestration import api, conf, registry
from orchestration.alerting import alerts
from orchestration.applications import status_messages
from orchestration.cluster.debounce import Pauses
from orchestration.database.sql import is_unavailable
from orchestration.models import Alert, StatusMessage
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit
from orchestration.workflows.workflow import Refused
from tests.support.database import writes_fail
from tests.support.engine import claimed, in_error, new_task, reply_to, run_to_end

pytestmark = pytest.mark.django_db
PATIENCE = 5  # failures in succession before a turn ends


@pytest.fixture
def delivered(monkeypatch):
    messages = []
    monkeypatch.setitem(registry.receivers, "shop", messages.extend)
    return messages


def test_status_messages_of_a_task_are_in_order(delivered):
    task = new_task("7", reply_to="shop")
    step = in_error(task)
    resubmit(step.id, attempt=step.attempt, actor="olga", reason="mended")
    run_to_end(task)
    assert status_messages.deliver("shop", 100) == 4
    assert [(message.number, message.kind) for message in delivered] == [
        (1, "received"),
        (2, "action_needed"),
        (3, "resumed"),
        (4, "completed"),
    ]
    assert {message.reference for message in delivered} == {"7"}
    assert not StatusMessage.objects.exists()
    assert status_messages.deliver("shop", 100) == 0


@pytest.fixture
def failing(monkeypatch):
    """Have the shop's receiver raise what `errors` has for a reference; return both."""
    delivered, errors = [], {}
    monkeypatch.setattr(status_messages, "_paused", Pauses())

    def receiver(messages):
        for message in messages:
            if error := errors.get(message.reference):
                raise error
        delivered.extend((message.reference, message.number) for message in messages)

    monkeypatch.setitem(registry.receivers, "shop", receiver)
    return delivered, errors


def let_pass():
    """Have the time of every retry come."""
    StatusMessage.objects.update(send_after=F("send_after") - timedelta(hours=1))


def test_refused_message_is_set_aside_and_does_not_delay_others(failing):
    delivered, errors = failing
    errors["bad"] = Refused("no such parcel")
    for reference in ("before", "bad", "after"):
        new_task(reference, reply_to="shop")
    assert status_messages.deliver("shop", 100) == 3
    assert delivered == [("before", 1), ("after", 1)]
    left = StatusMessage.objects.get()
    assert (left.task.reference, left.reason) == ("bad", "no such parcel")
    assert Alert.objects.get().fingerprint == "status/shop"
    let_pass()
    assert status_messages.deliver("shop", 100) == 0


def test_failed_message_is_retried_before_later_ones_of_its_task(failing):
    delivered, errors = failing
    errors["bad"] = ValueError("what is this?")
    run_to_end(new_task("bad", reply_to="shop"))
    new_task("good", reply_to="shop")
    assert status_messages.deliver("shop", 100) == 2  # its second message is not tried, nor counted
    assert delivered == [("good", 1)]
    left = StatusMessage.objects.earliest("number")
    assert (left.tries, left.refused_at, left.reason) == (1, None, "ValueError: what is this?")
    assert status_messages.deliver("shop", 100) == 0  # neither is due
    assert not Alert.objects.exists()
    let_pass()
    assert status_messages.deliver("shop", 100) == 1
    assert Alert.objects.get(closed_at=None).fingerprint == "status/shop/failing"
    errors.clear()
    let_pass()
    assert [status_messages.deliver("shop", 100) for _ in range(3)] == [1, 1, 0]
    assert delivered == [("good", 1), ("bad", 1), ("bad", 2)]
    assert alerts.close_recovered() == 1


def test_receiver_that_fails_repeatedly_is_paused(failing):
    delivered, errors = failing
    for number in range(20):
        errors[str(number)] = ValueError("a bad release")
        new_task(str(number), reply_to="shop")
    assert status_messages.deliver("shop", 100) == 0
    assert StatusMessage.objects.filter(tries=0, reason="").count() == 20 - PATIENCE
    errors.clear()
    assert (
        status_messages.deliver("shop", 100) == 0
    )  # it is left alone for a while, whichever process rings
    status_messages._paused["fresh", "shop"] -= conf.FAILING_WORKFLOW_PAUSE_S
    status_messages.deliver("shop", 100)
    assert len(delivered) == 20 - PATIENCE


def test_failed_messages_do_not_delay_later_ones(failing):
    delivered, errors = failing
    for number in range(30):
        errors[f"bad-{number}"] = ValueError("what is this?")
        run_to_end(new_task(f"bad-{number}", reply_to="shop"))
    for number in range(10):
        run_to_end(new_task(f"good-{number}", reply_to="shop"))
    status_messages.deliver("shop", 200)
    good = [(f"good-{task}", number) for task in range(10) for number in (1, 2)]
    assert sorted(delivered) == good
    assert StatusMessage.objects.filter(tries__gt=0).count() == 30  # the first of each task
    let_pass()
    new_task("fresh", reply_to="shop")
    status_messages.deliver("shop", 200)  # their retries fail
    assert delivered[len(good) :] == [("fresh", 1)]
    assert status_messages._paused.keys() == {("retries", "shop")}
    errors.clear()
    status_messages._paused.clear()
    let_pass()
    while status_messages.deliver("shop", 200):
        pass
    for number in range(30):
        assert [which for task, which in delivered if task == f"bad-{number}"] == [1, 2]


def test_many_refused_messages_do_not_delay_others(failing):
    delivered, errors = failing
    for number in range(12):
        errors[str(number)] = Refused("never")
        new_task(str(number), reply_to="shop")
    new_task("good", reply_to="shop")
    while status_messages.deliver("shop", 20):
        pass
    assert delivered == [("good", 1)]
    assert StatusMessage.objects.filter(refused_at__isnull=False).count() == 12


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("code", ["57P01", "25006"])
def test_no_message_is_set_aside_while_the_database_is_unavailable(code):
    new_task(reply_to="shop")
    with (
        writes_fail("orchestration_statusmessage", "DELETE", code, times=1),
        pytest.raises(Error) as raised,
    ):
        status_messages.deliver("shop", 100)
    assert is_unavailable(raised.value)
    connection.close()
    assert StatusMessage.objects.get().refused_at is None
    assert status_messages.deliver("shop", 100) == 1


def test_shop_ignores_messages_that_are_not_about_orders():
    new_task("not a UUID", reply_to="shop")
    assert status_messages.deliver("shop", 100) == 1
    assert not StatusMessage.objects.exists()


def test_application_without_a_receiver_cannot_be_notified():
    with pytest.raises(LookupError, match="did you mean 'shop'"):
        api.submit("greet", reference="1", data={"name": "Ada"}, reply_to="shopp")


def test_recording_returns_the_applications_to_ring_for():
    new_task(reply_to="shop")
    new_task()
    record([reply_to(request) for request in claimed()])
    recorded = record([reply_to(request) for request in claimed()])
    assert recorded.applications == {"shop"}
