"""Pushed status messages: at least once, in order per task, to no other address; an alert on giving up."""

import base64
import hashlib
import hmac
import json
import time
from collections import defaultdict
from datetime import timedelta

import pytest
from django.db.models import F

from docs.examples.shop_client import verify
from orchestration import conf
from orchestration.applications import push, status_messages
from orchestration.database import clock
from orchestration.dead_letters import actions
from orchestration.dead_letters.actions import DeadLetterFilter, Kind
from orchestration.messaging import queues
from orchestration.models import Alert, Application, StatusMessage, SupervisorPolicy
from orchestration.models.fields import DatabaseNow
from orchestration.monitoring import monitors
from orchestration.transitions.replies import record
from orchestration.workers import jobs
from tests.support.engine import claimed, new_task, reply_to, run_to_end, staff, sweep
from tests.support.operators import LEADER
from tests.support.receiver import receiving

pytestmark = pytest.mark.django_db
SECRET = "a secret that is long enough"


@pytest.fixture
def receiver(settings):
    settings.WEBHOOKS_ALLOW_PRIVATE = True
    with receiving() as server:
        yield server


def application(receiver, name="till", **fields):
    known = {"delivery": "push", "url": f"{receiver.url}/{name}", "secret": SECRET}
    return Application.objects.create(name=name, **known | fields)


def got(receiver):
    return [json.loads(body) for _, body in receiver.got]


def send_all(most=100):
    """Send until nothing is due."""
    for _ in range(most):
        if not push.send_due():
            return
    raise AssertionError("it never ends")


def let_pass(seconds=1e6):
    """Let time pass for what waits to be sent again."""
    earlier = timedelta(seconds=seconds)
    StatusMessage.objects.update(send_after=F("send_after") - earlier)
    Application.objects.update(push_after=F("push_after") - earlier)


def test_messages_arrive_signed_and_in_order_and_are_deleted(receiver):
    application(receiver)
    task = new_task("7", reply_to="till")
    run_to_end(task)
    send_all()
    assert [(sent["number"], sent["kind"], sent["reference"]) for sent in got(receiver)] == [
        (1, "received", "7"),
        (2, "completed", "7"),
    ]
    headers, body = receiver.got[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert verify(headers, body, SECRET).number == 1
    for wrong in ((headers, body + b" ", SECRET), (headers, body, "another")):
        with pytest.raises(ValueError, match="signature"):
            verify(*wrong)
    with pytest.raises(ValueError, match="too old"):
        verify({**headers, "webhook-timestamp": "1"}, body, SECRET)
    for changes, why in (
        (dict.fromkeys(headers), "lacks"),
        ({"webhook-timestamp": "nan"}, "too old"),
    ):
        changed = {name: value for name, value in {**headers, **changes}.items() if value}
        with pytest.raises(ValueError, match=why):
            verify(changed, body, SECRET)
    assert not StatusMessage.objects.exists()


def test_signature_has_the_right_time_though_the_worker_has_not(receiver, monkeypatch):
    application(receiver)
    right = time.time()
    clock.measure()
    monkeypatch.setattr(clock.time, "time", lambda: right + 600)
    new_task(reply_to="till")
    send_all()
    ((headers, _),) = receiver.got
    assert int(headers["webhook-timestamp"]) == pytest.approx(right, abs=30)


def test_later_message_never_overtakes_a_failed_one(receiver):
    application(receiver)
    first, other = new_task("1", reply_to="till"), new_task("2", reply_to="till")
    run_to_end(first)
    run_to_end(other)
    refused = []

    def poison():
        body = json.loads(receiver.got[-1][1])
        bad = body["reference"] == "1" and len(refused) < 2
        refused.extend([body] if bad else [])
        receiver.answers[:] = [500 if bad else 204]

    receiver.meanwhile = poison
    send_all()
    assert StatusMessage.objects.filter(task=first).count() == 2
    assert not StatusMessage.objects.filter(task=other).exists()
    for _ in range(3):
        let_pass()
        send_all()
    received = [(sent["reference"], sent["number"]) for sent in got(receiver)]
    assert [number for reference, number in received if reference == "1"] == [1, 1, 1, 2]
    ids = {headers["webhook-id"] for headers, body in receiver.got if b'"reference":"1"' in body}
    assert len(ids) == 2


def test_unavailable_receiver_is_probed_rarely_with_one_message(receiver):
    till = application(receiver)
    for _ in range(50):
        new_task(reply_to="till")
    receiver.answers = [503]
    waits = []
    for _ in range(4):
        push.send_due(chance=lambda: 1.0)
        assert push.send_due() == 0
        assert not push.due()
        left = Application.objects.annotate(left=F("push_after") - DatabaseNow()).get(id=till.id)
        waits.append(left.left.total_seconds())
        let_pass(waits[-1])
        StatusMessage.objects.update(send_after=None)
    assert waits == pytest.approx([10, 20, 40, 80], rel=0.4)
    assert len(receiver.got) == conf.PUSHES_PER_APPLICATION + 3
    receiver.answers = [204]
    assert push.due()
    send_all()
    till.refresh_from_db()
    assert (till.push_failures, till.push_error) == (0, "")
    assert not StatusMessage.objects.exists()


def test_unavailable_receiver_does_not_delay_others(receiver):
    with receiving() as dead:
        dead.answers = [500]
        application(dead, "dead")
        application(receiver)
        for _ in range(conf.PUSHES_PER_APPLICATION + 5):
            new_task(reply_to="dead")
            new_task(reply_to="till")
        send_all()
    assert len(receiver.got) == conf.PUSHES_PER_APPLICATION + 5


def test_undelivered_message_is_given_up_after_a_day_and_can_be_resent(receiver):
    application(receiver)
    run_to_end(new_task(reply_to="till"))
    receiver.answers = [500]
    StatusMessage.objects.update(
        created_at=F("created_at") - timedelta(seconds=conf.NOTIFICATION_MAX_AGE_S)
    )
    for _ in range(conf.MIN_PUSH_TRIES):
        assert not Alert.objects.exists()
        send_all()
        let_pass()
    first, _ = StatusMessage.objects.order_by("number")
    assert first.refused_at is not None
    assert "It answered 500." in first.reason
    assert Alert.objects.get(closed_at=None).fingerprint == "status/till"
    receiver.answers = [204]
    send_all()  # what comes after it is not held up for ever
    assert list(StatusMessage.objects.all()) == [first]
    assert actions.retry(DeadLetterFilter(kind=Kind.STATUS, name="till"), by="olga") == 1
    assert not Alert.objects.filter(closed_at=None).exists()
    send_all()
    assert [sent["number"] for sent in got(receiver)][-2:] == [2, 1]
    assert not StatusMessage.objects.exists()


def test_message_of_a_dead_sender_is_sent_again(receiver):
    application(receiver)
    new_task(reply_to="till")

    def die():
        raise KeyboardInterrupt

    receiver.answers = [500, 204]
    with pytest.raises(KeyboardInterrupt):
        push.send_due(chance=die)
    assert push.send_due() == 0
    let_pass(conf.NOTIFICATION_LEASE_S)
    assert push.send_due() == 1
    assert not StatusMessage.objects.exists()
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1


def test_receiver_switched_off_gets_nothing_and_loses_nothing(receiver):
    application(receiver, active=False)
    new_task(reply_to="till")
    assert push.send_due() == 0
    Application.objects.update(active=True)
    assert push.send_due() == 1


def test_undelivered_messages_raise_an_alert_with_the_reason(receiver):
    application(receiver)
    application(receiver, "fetcher", delivery="pull")
    receiver.answers = [500]
    new_task(reply_to="till")
    new_task(reply_to="fetcher")
    send_all()
    SupervisorPolicy.objects.update(status_undelivered=60)
    StatusMessage.objects.update(created_at=F("created_at") - timedelta(seconds=100))
    monitors.look(monitors.Debounce())
    details = {
        alert.fingerprint.rpartition("/")[2]: alert.detail
        for alert in Alert.objects.filter(fingerprint__startswith="system/status_undelivered")
    }
    assert "It answered 500." in details["till"]
    assert "does not fetch" in details["fetcher"]


def test_supervisor_rings_for_due_messages(receiver):
    application(receiver)
    new_task(reply_to="till")
    staff()
    StatusMessage.objects.update(created_at=F("created_at") - timedelta(seconds=10))
    sweep(LEADER)
    assert queues.waiting([queues.PUSH, "status.shop"]) == [queues.PUSH]
    assert status_messages.queue_of("shop") == "status.shop"


@pytest.mark.django_db(transaction=True)
def test_hundred_applications_get_their_messages_in_order(receiver, monkeypatch):
    """Redis is wiped and the receivers are down for a while; half of them fetch, half are sent."""
    monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.01)
    names = [f"app-{number:03}" for number in range(100)]
    for number, name in enumerate(names):
        application(receiver, name, delivery="push" if number % 2 else "pull", notify_steps=True)
    tasks = {name: [new_task(f"{name}/{n}", reply_to=name) for n in range(3)] for name in names}
    receiver.answers = [503]
    jobs.push_status()
    assert got(receiver)
    receiver.got.clear()
    queues.connection().flushall()
    while requests := claimed():
        record([reply_to(request) for request in requests])
    receiver.answers = [204]
    let_pass()
    jobs.push_status()
    heard = defaultdict(list)
    paths = defaultdict(set)
    for headers, raw in receiver.got:
        body = json.loads(raw)
        heard[body["reference"]].append(body["number"])
        paths[headers[":path"].rpartition("/")[2]].add(body["reference"].partition("/")[0])
    for name in names[::2]:
        while rows := status_messages.fetch(name, 4):
            for row in rows:
                assert row.reply_to == name
                heard[row.task.reference].append(row.number)
                paths[name].add(row.task.reference.partition("/")[0])
            status_messages.acknowledge(name, [row.id for row in rows])
    count = tasks[names[0]][0].steps.count() + 2
    expected = {task.reference for own in tasks.values() for task in own}
    assert heard == {reference: list(range(1, count + 1)) for reference in expected}
    assert all(seen == {name} for name, seen in paths.items())
    assert not StatusMessage.objects.exists()
