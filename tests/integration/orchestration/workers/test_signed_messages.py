"""Who may write to Redis, and has no key, cannot say how an attempt ended."""

import pytest

from orchestration import conf
from orchestration.dead_letters import actions, capture
from orchestration.messaging import queues, signing
from orchestration.messaging.messages import Request
from orchestration.models import Alert, Attempt, DeadLetter
from orchestration.workers import jobs
from tests.support.engine import claimed, new_task, reply_to, states
from tests.support.serving import serve

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "a key of thirty-two characters, at least"


@pytest.fixture(autouse=True)
def _signed(monkeypatch, settings):
    monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.05)
    settings.MESSAGE_KEYS = [KEY]
    jobs._alerted.clear()
    yield
    for queue in ("greeter", queues.SCHEDULER):
        signing.refused(queue)


def push(queue, *messages):
    """Put messages on Redis as a program without a key can, and ring."""
    queues.connection().rpush(queues.inbox(queue), *messages)
    queues.ring(queue)


def test_signed_requests_and_replies_are_taken_at_their_ends():
    new_task()
    queues.ring(queues.SCHEDULER)
    serve(queues.SCHEDULER)
    (raw,) = queues.connection().lrange(queues.inbox("greeter"), 0, -1)
    assert b',"mac":"' in raw
    serve("greeter")
    (raw,) = queues.connection().lrange(queues.inbox(queues.SCHEDULER), 0, -1)
    assert b',"mac":"' in raw
    serve(queues.SCHEDULER)
    assert Attempt.objects.get().agent.startswith("greeter@")  # its service is not there
    assert not DeadLetter.objects.exists()


def test_forged_reply_is_refused_with_an_alert_and_the_genuine_one_is_taken():
    task = new_task()
    (request,) = claimed()
    push(queues.SCHEDULER, reply_to(request).dump())
    serve(queues.SCHEDULER)
    assert states(task)["hello"] == "processing"
    assert not Attempt.objects.exists()
    alert = Alert.objects.get(fingerprint="dead_letter/scheduler")
    assert (alert.severity, alert.closed_at) == ("critical", None)
    assert capture.FORGED in alert.title
    queues.ring(queues.SCHEDULER, [reply_to(request).dump()])
    serve(queues.SCHEDULER)
    assert states(task)["hello"] == "processed"


def test_forged_request_reaches_no_agent():
    new_task()
    (request,) = claimed()
    push("greeter", request.dump())
    serve("greeter")
    assert queues.take(queues.SCHEDULER, 10) == []
    assert Alert.objects.filter(fingerprint="dead_letter/greeter").exists()


def test_request_to_another_agent_reaches_no_agent():
    new_task()
    (request,) = claimed()
    (raw,) = signing.sign("payment", [request.dump()])
    push("greeter", raw)
    serve("greeter")
    assert queues.take(queues.SCHEDULER, 10) == []


def test_repeated_reply_changes_nothing():
    task = new_task()
    (request,) = claimed()
    (raw,) = signing.sign(queues.SCHEDULER, [reply_to(request).dump()])
    push(queues.SCHEDULER, raw)
    serve(queues.SCHEDULER)
    before = list(Attempt.objects.values())
    push(queues.SCHEDULER, raw, raw)
    serve(queues.SCHEDULER)
    assert states(task)["hello"] == "processed"
    assert list(Attempt.objects.values()) == before


def test_many_forged_messages_open_one_alert_and_keep_one_of_them():
    for _ in range(3):
        push(queues.SCHEDULER, *[b"{}"] * (conf.BATCH_SIZE + 1))
        serve(queues.SCHEDULER)
    assert DeadLetter.objects.count() == 1
    assert Alert.objects.count() == 1


def test_kept_forged_reply_does_no_harm_when_a_person_returns_it():
    task = new_task()
    (request,) = claimed()
    push(queues.SCHEDULER, reply_to(request).dump())
    serve(queues.SCHEDULER)
    actions.retry(actions.DeadLetterFilter(kind=actions.Kind.INBOX), by="olga")
    assert capture.return_due(10) == 1
    serve(queues.SCHEDULER)
    assert states(task)["hello"] == "processing"


def test_reply_that_was_kept_is_signed_when_it_returns():
    new_task()
    (request,) = claimed()
    capture.store(queues.SCHEDULER, reply_to(request).dump(), ValueError("x"), returned=0)
    DeadLetter.objects.update(retry_at="2020-01-01T00:00:00Z")
    capture.return_due(10)
    (message, *_) = queues.take(queues.SCHEDULER, 10)
    assert b'"returned":1' in message
    assert signing.refused(queues.SCHEDULER) is None


def test_request_that_is_handed_back_is_signed():
    (raw,) = signing.sign("greeter", [b'{"step":1}'])
    queues.connection().rpush(queues.inbox("greeter"), raw)
    taken = queues.take("greeter", 1)
    queues.put_back("greeter", taken)
    assert queues.connection().lrange(queues.inbox("greeter"), 0, -1) == [raw]


def test_requests_at_hand_that_others_wrote_are_nobodys():
    others = {"1": "2", "x": "1", "3": "", "-4": "1", "9" * 19: "1", "5": "9" * 10}
    queues.connection().hset(queues.at_hand("greeter-1"), mapping=others)
    assert queues.held_by("greeter-1") == {1: 2}


def test_unknown_fields_of_a_signed_request_are_ignored_by_a_process_without_a_key(settings):
    new_task()
    (request,) = claimed()
    queues.ring("greeter", [request.dump()])
    settings.MESSAGE_KEYS = []
    (raw,) = queues.take("greeter", 1)
    assert Request.parse(raw) == request
