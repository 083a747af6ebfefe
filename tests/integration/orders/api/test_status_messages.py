"""Status messages through the API: fetch, acknowledge and the limited wait."""

import threading
import time

import pytest
from django.db import connections

from orchestration.applications import tokens
from orchestration.models import Application, StatusMessage
from orders.api import status_messages as waiting
from tests.support.applications import Caller, application
from tests.support.engine import new_task, run_to_end

pytestmark = pytest.mark.django_db


@pytest.fixture
def till():
    return Caller(application("till")[1])


def fetched(caller, **query):
    response = caller.get("status-messages", **query)
    assert response.status_code == 200, response.text
    return response.json()["messages"]


def test_fetch_repeats_until_acknowledged(till):
    for reference in ("1", "2"):
        run_to_end(new_task(reference, reply_to="till"))
    first = fetched(till)
    assert fetched(till) == first
    assert [(sent["reference"], sent["number"], sent["kind"]) for sent in first] == [
        ("1", 1, "received"),
        ("1", 2, "completed"),
        ("2", 1, "received"),
        ("2", 2, "completed"),
    ]
    assert [sent["id"] for sent in fetched(till, limit=1, after=first[1]["id"])] == [first[2]["id"]]
    ids = [sent["id"] for sent in first]
    answers = [till.post("status-messages/acknowledge", {"ids": ids[:3]}) for _ in range(2)]
    assert [answer.json() for answer in answers] == [{"acknowledged": 3}, {"acknowledged": 0}]
    assert [sent["id"] for sent in fetched(till)] == ids[3:]


def test_acknowledge_of_another_application_changes_nothing(till):
    other = Caller(application("other")[1])
    new_task(reply_to="till")
    (message,) = fetched(till)
    assert fetched(other) == []
    done = other.post("status-messages/acknowledge", {"ids": [message["id"]]})
    assert done.json() == {"acknowledged": 0}
    assert StatusMessage.objects.count() == 1


def test_fetch_for_an_application_with_a_consumer_is_refused():
    shop = Application.objects.get(name="shop")
    _, token = tokens.issue(shop, label="x", scopes=["status:read"], by="ada")
    new_task(reply_to="shop")
    refused = Caller(token).get("status-messages")
    assert (refused.status_code, refused.json()["code"]) == (409, "taken_by_a_consumer")


@pytest.mark.parametrize("query", [{"wait": 21}, {"wait": -1}, {"limit": 0}, {"limit": 1001}])
def test_fetch_with_an_invalid_limit_or_wait(till, query):
    assert till.get("status-messages", **query).status_code == 422


@pytest.mark.django_db(transaction=True)
def test_wait_ends_at_the_first_message(till, monkeypatch):
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.01)
    timer = threading.Timer(0.2, _add_task)
    timer.start()
    started = time.monotonic()
    assert [sent["kind"] for sent in fetched(till, wait=20)] == ["received"]
    assert time.monotonic() - started < 10
    timer.join()
    assert not waiting._waiting.locked()


def _add_task():
    try:
        new_task(reply_to="till")
    finally:
        connections.close_all()


def test_wait_of_one_request_at_a_time(till):
    other = Caller(application("other")[1])
    started = time.monotonic()
    with waiting._place_to_wait() as first:
        assert first
        assert fetched(till, wait=20) == []
        assert fetched(other, wait=20) == []
    assert time.monotonic() - started < 5
    assert fetched(other, wait=1) == []
    assert time.monotonic() - started >= 1
