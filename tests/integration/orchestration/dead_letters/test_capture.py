"""A reply is never lost: recorded, back in the inbox, or kept as a dead letter."""

from datetime import timedelta

import psycopg2
import pytest
from django.db import Error, OperationalError, connection

from orchestration import conf, scheduler
from orchestration.dead_letters import capture
from orchestration.housekeeping import housekeeper
from orchestration.messaging import queues
from orchestration.messaging.messages import Reply
from orchestration.models import Alert, Attempt, DeadLetter, Event
from orchestration.models.fields import DatabaseNow
from orchestration.supervision.duties import due
from orchestration.transitions.foreign_locks import LOCKED_STEPS
from tests.support.database import commits_fail, writes_fail
from tests.support.engine import claimed, new_task, reply_to, staff, states, sweep
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db(transaction=True)
ALERT = "dead_letter/scheduler"
UNSTORABLE = "unstorable"  # a code that the database refuses


@pytest.fixture
def _refused_by_the_database():
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE orchestration_attempt ADD CONSTRAINT storable"
            f" CHECK (NOT error_code = '{UNSTORABLE}')"
        )
        yield
        cursor.execute("ALTER TABLE orchestration_attempt DROP CONSTRAINT storable")


def replies(count, **fields):
    for _ in range(count):
        new_task()
    return [reply_to(request, **fields) for request in claimed()]


def turn(messages, look_at=()):
    return scheduler.run_once("scheduler-1", [reply.dump() for reply in messages], look_at)


def in_the_inbox():
    return [raw for raw in queues.take(queues.SCHEDULER, 1000) if raw != queues.LOOK]


def let_wait(seconds):
    """Have the dead letters wait for so much longer already."""
    for letter in DeadLetter.objects.exclude(retry_at=None):
        DeadLetter.objects.filter(id=letter.id).update(
            retry_at=letter.retry_at - timedelta(seconds=seconds)
        )


@pytest.mark.usefixtures("_refused_by_the_database")
def test_unrecordable_reply_is_kept_and_the_others_are_recorded():
    good, bad = new_task(), new_task()
    messages = [
        reply_to(request, code=UNSTORABLE if request.task == bad.id else "")
        for request in claimed()
    ]
    turn(messages)
    assert states(good) == {"hello": "processed", "again": "processing"}
    assert states(bad)["hello"] == "processing"
    letter = DeadLetter.objects.get()
    assert Reply.parse(letter.body.encode()) in messages
    assert (letter.queue, letter.tries) == ("scheduler", 1)
    assert "violates check constraint" in letter.reason
    assert not in_the_inbox()
    assert not Alert.objects.exists()


@pytest.mark.usefixtures("_refused_by_the_database")
def test_reply_is_retried_three_times_then_waits_for_a_person():
    staff()
    (reply,) = replies(1, code=UNSTORABLE)
    turn([reply])
    for returned, wait in enumerate(conf.DEAD_LETTER_WAITS_S, 1):
        letter = DeadLetter.objects.get()
        assert letter.tries == returned
        assert wait - 1 < (letter.retry_at - letter.created_at).total_seconds() < wait + 1
        assert capture.return_due(10) == 0  # not before its time
        let_wait(wait)
        assert due(housekeeper.all_duties())
        sweep(LEADER)
        assert not DeadLetter.objects.exists()
        (raw,) = in_the_inbox()
        assert Reply.parse(raw).returned == returned
        scheduler.run_once("scheduler-1", [raw], [])
    letter = DeadLetter.objects.get()
    assert (letter.tries, letter.retry_at) == (4, None)
    assert Alert.objects.get(fingerprint=ALERT).severity == "critical"
    sweep(LEADER)
    assert Alert.objects.get(fingerprint=ALERT).closed_at is None
    DeadLetter.objects.all().delete()
    sweep(LEADER)
    assert Alert.objects.get(fingerprint=ALERT).closed_at


def test_reply_that_succeeds_on_a_retry_is_not_kept():
    task = new_task()
    (request,) = claimed()
    with writes_fail("orchestration_attempt", "INSERT", "XX000"):
        turn([reply_to(request)])
    DeadLetter.objects.update(retry_at=DatabaseNow())
    assert capture.return_due(10) == 1
    scheduler.run_once("scheduler-1", in_the_inbox(), [])
    assert states(task)["hello"] == "processed"
    assert not DeadLetter.objects.exists()


def test_letter_that_redis_does_not_take_stays():
    capture.store("no such queue", b"{}", ValueError("why"), returned=0)
    DeadLetter.objects.update(retry_at=DatabaseNow())
    assert capture.return_due(10) == 0
    assert DeadLetter.objects.exists()


def test_letter_keeps_any_bytes():
    capture.store("scheduler", b"\xff\x00{", ValueError("a\x00b"), returned=7)
    letter = DeadLetter.objects.get()
    assert letter.body == r"\xff\x00{"
    assert letter.reason == "ValueError: ab"
    assert letter.retry_at is None


@pytest.mark.usefixtures("_refused_by_the_database")
def test_reply_that_cannot_be_kept_returns_unchanged():
    (reply,) = replies(1, code=UNSTORABLE)
    with (
        writes_fail("orchestration_deadletter", "INSERT", "53100"),
        pytest.raises(Error, match="it is struck"),
    ):
        turn([reply])
    assert in_the_inbox() == [reply.dump()]


def test_few_replies_are_kept_when_all_fail_alike():
    messages = replies(12)
    with (
        writes_fail("orchestration_attempt", "INSERT", "42P01"),
        pytest.raises(Error, match="it is struck"),
    ):
        turn(messages)
    assert DeadLetter.objects.count() == 5
    bodies = [
        raw.encode() for raw in DeadLetter.objects.order_by("id").values_list("body", flat=True)
    ]
    assert bodies + in_the_inbox() == [reply.dump() for reply in messages]
    assert not Attempt.objects.exists()


@pytest.mark.parametrize("code", ["23514", "22003", "42P01"])
def test_failed_claim_does_not_affect_replies(code):
    task = new_task()
    (request,) = claimed()
    new_task()  # for another claim
    with (
        writes_fail("orchestration_gate", "UPDATE", code),
        pytest.raises(Error, match="it is struck"),
    ):
        turn([reply_to(request)], ["greeter"])
    assert states(task)["hello"] == "processed"
    assert not DeadLetter.objects.exists()
    assert not in_the_inbox()
    turn([], ["greeter"])
    assert states(task)["again"] == "processing"


def test_replies_return_when_the_database_goes_away_while_locked_rows_are_looked_for():
    sent = replies(3)

    def away(execute, statement, *call):
        if statement == LOCKED_STEPS:
            raise OperationalError from psycopg2.OperationalError("the connection is gone")
        return execute(statement, *call)

    with (
        writes_fail("orchestration_attempt", "INSERT", "55P03"),
        connection.execute_wrapper(away),
        pytest.raises(OperationalError),
    ):
        turn(sent)
    assert in_the_inbox() == [reply.dump() for reply in sent]


@pytest.mark.parametrize("code", ["57P01", "40P01"])
def test_failed_commit_loses_and_doubles_nothing(code):
    messages = replies(3)
    with commits_fail("orchestration_attempt", "INSERT", code, times=1):
        try:
            turn(messages)
        except Error:
            assert code == "57P01"
    scheduler.run_once("scheduler-1", in_the_inbox(), [])
    assert Attempt.objects.count() == 3
    assert not Event.objects.filter(kind="reply_refused").exists()
    assert not DeadLetter.objects.exists()
