"""Status messages through the API: in order, until acknowledged, nobody else's; the bounded wait."""

import threading
import time

import pytest
from django.db import connections

from orchestration import applications
from orchestration.models import Application, StatusMessage
from orders.api import messages as waiting
from tests.applications import Caller, application
from tests.engine import new_task, run_to_end

pytestmark = pytest.mark.django_db


@pytest.fixture
def till():
    return Caller(application("till")[1])


def fetched(caller, **query):
    response = caller.get("status-messages", **query)
    assert response.status_code == 200, response.text
    return response.json()["messages"]


def test_messages_come_in_order_and_again_until_they_are_acknowledged(till):
    for reference in ("1", "2"):
        run_to_end(new_task(reference, reply_to="till"))
    first = fetched(till)
    assert fetched(till) == first
    assert [(one["reference"], one["number"], one["kind"]) for one in first] == [
        ("1", 1, "received"),
        ("1", 2, "completed"),
        ("2", 1, "received"),
        ("2", 2, "completed"),
    ]
    assert [one["id"] for one in fetched(till, limit=1, after=first[1]["id"])] == [first[2]["id"]]
    ids = [one["id"] for one in first]
    answers = [till.post("status-messages/acknowledge", {"ids": ids[:3]}) for _ in range(2)]
    assert [answer.json() for answer in answers] == [{"acknowledged": 3}, {"acknowledged": 0}]
    assert [one["id"] for one in fetched(till)] == ids[3:]


def test_nobody_acknowledges_anothers(till):
    other = Caller(application("other")[1])
    new_task(reply_to="till")
    (message,) = fetched(till)
    assert fetched(other) == []
    done = other.post("status-messages/acknowledge", {"ids": [message["id"]]})
    assert done.json() == {"acknowledged": 0}
    assert StatusMessage.objects.count() == 1


def test_what_a_consumer_takes_is_not_fetched():
    shop = Application.objects.get(name="shop")
    _, token = applications.issue(shop, label="x", scopes=["status:read"], by="ada")
    new_task(reply_to="shop")
    refused = Caller(token).get("status-messages")
    assert (refused.status_code, refused.json()["code"]) == (409, "taken_by_a_consumer")


@pytest.mark.parametrize("query", [{"wait": 21}, {"wait": -1}, {"limit": 0}, {"limit": 1001}])
def test_nobody_waits_or_takes_without_end(till, query):
    assert till.get("status-messages", **query).status_code == 422


@pytest.mark.django_db(transaction=True)
def test_waiting_ends_with_a_message(till, monkeypatch):
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.01)
    timer = threading.Timer(0.2, _tell)
    timer.start()
    started = time.monotonic()
    assert [one["kind"] for one in fetched(till, wait=20)] == ["received"]
    assert time.monotonic() - started < 10
    timer.join()
    assert not waiting._waiting.locked()


def _tell():
    try:
        new_task(reply_to="till")
    finally:
        connections.close_all()


def test_one_waits_at_once_and_the_others_are_answered(till):
    other = Caller(application("other")[1])
    started = time.monotonic()
    with waiting._place_to_wait() as first:
        assert first
        assert fetched(till, wait=20) == []
        assert fetched(other, wait=20) == []
    assert time.monotonic() - started < 5
    assert fetched(other, wait=1) == []
    assert time.monotonic() - started >= 1
