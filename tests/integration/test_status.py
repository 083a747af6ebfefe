"""Status messages: numbered, in the transaction, taken once (P27)."""

from datetime import timedelta

import pytest
from django.db import Error, connection
from django.db.models import F

from orchestration import alerts, api, conf, registry, status
from orchestration.lasting import Pauses
from orchestration.models import Alert, StatusMessage
from orchestration.sql import is_unavailable
from orchestration.transitions.record import record
from orchestration.transitions.resubmit import resubmit
from orchestration.workflow import Refused
from tests.database import writes_fail
from tests.engine import claimed, in_error, new_task, reply_to, run_to_end

pytestmark = pytest.mark.django_db
PATIENCE = 5  # failures in succession before a turn ends


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


@pytest.fixture
def failing(monkeypatch):
    """Have the shop's receiver raise what `errors` has for a reference; return both."""
    told, errors = [], {}
    monkeypatch.setattr(status, "_paused", Pauses())

    def receiver(messages):
        for one in messages:
            if error := errors.get(one.reference):
                raise error
        told.extend((one.reference, one.number) for one in messages)

    monkeypatch.setitem(registry.receivers, "shop", receiver)
    return told, errors


def let_pass():
    """Have the time of every retry come."""
    StatusMessage.objects.update(send_after=F("send_after") - timedelta(hours=1))


def test_one_that_its_receiver_refuses_is_set_aside_and_holds_up_no_other(failing):
    told, errors = failing
    errors["bad"] = Refused("no such parcel")
    for reference in ("before", "bad", "after"):
        new_task(reference, reply_to="shop")
    assert status.deliver("shop", 100) == 3
    assert told == [("before", 1), ("after", 1)]
    left = StatusMessage.objects.get()
    assert (left.task.reference, left.reason) == ("bad", "no such parcel")
    assert Alert.objects.get().fingerprint == "status/shop"
    let_pass()
    assert status.deliver("shop", 100) == 0


def test_one_on_which_its_receiver_fails_is_tried_again_before_later_ones_of_its_task(failing):
    told, errors = failing
    errors["bad"] = ValueError("what is this?")
    run_to_end(new_task("bad", reply_to="shop"))
    new_task("good", reply_to="shop")
    assert status.deliver("shop", 100) == 2  # its second message is not tried, nor counted
    assert told == [("good", 1)]
    left = StatusMessage.objects.earliest("number")
    assert (left.tries, left.refused_at, left.reason) == (1, None, "ValueError: what is this?")
    assert status.deliver("shop", 100) == 0  # neither is due
    assert not Alert.objects.exists()
    let_pass()
    assert status.deliver("shop", 100) == 1
    assert Alert.objects.get(closed_at=None).fingerprint == "status/shop/failing"
    errors.clear()
    let_pass()
    assert [status.deliver("shop", 100) for _ in range(3)] == [1, 1, 0]
    assert told == [("good", 1), ("bad", 1), ("bad", 2)]
    assert alerts.close_settled() == 1


def test_a_receiver_that_fails_on_one_after_the_other_is_left_alone(failing):
    told, errors = failing
    for number in range(20):
        errors[str(number)] = ValueError("a bad release")
        new_task(str(number), reply_to="shop")
    assert status.deliver("shop", 100) == 0
    assert StatusMessage.objects.filter(tries=0, reason="").count() == 20 - PATIENCE
    errors.clear()
    assert status.deliver("shop", 100) == 0  # it is left alone for a while, whoever rings
    status._paused["fresh", "shop"] -= conf.FAILING_PAUSE
    status.deliver("shop", 100)
    assert len(told) == 20 - PATIENCE


def test_those_on_which_it_fails_hold_up_no_later_ones(failing):
    told, errors = failing
    for number in range(30):
        errors[f"bad-{number}"] = ValueError("what is this?")
        run_to_end(new_task(f"bad-{number}", reply_to="shop"))
    for number in range(10):
        run_to_end(new_task(f"good-{number}", reply_to="shop"))
    status.deliver("shop", 200)
    good = [(f"good-{task}", number) for task in range(10) for number in (1, 2)]
    assert sorted(told) == good
    assert StatusMessage.objects.filter(tries__gt=0).count() == 30  # the first of each task
    let_pass()
    new_task("fresh", reply_to="shop")
    status.deliver("shop", 200)  # their retries fail
    assert told[len(good) :] == [("fresh", 1)]
    assert status._paused.keys() == {("retries", "shop")}
    errors.clear()
    status._paused.clear()
    let_pass()
    while status.deliver("shop", 200):
        pass
    for number in range(30):
        assert [which for task, which in told if task == f"bad-{number}"] == [1, 2]


def test_many_that_are_refused_hold_up_nobody(failing):
    told, errors = failing
    for number in range(12):
        errors[str(number)] = Refused("never")
        new_task(str(number), reply_to="shop")
    new_task("good", reply_to="shop")
    while status.deliver("shop", 20):
        pass
    assert told == [("good", 1)]
    assert StatusMessage.objects.filter(refused_at__isnull=False).count() == 12


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
