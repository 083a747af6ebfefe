"""A change of a task's input beside a claim of its steps: what is sent is what the state store has."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

import pytest
from django.db import connection, transaction

from drill.waiting import wait_for
from orchestration import api, registry, task_requests
from orchestration.api import Step, Workflow, field
from orchestration.database.sql import ConcurrentUpdate
from orchestration.models import TaskRequest
from orchestration.transitions import locked_task, moves
from orchestration.transitions.claim import claim
from orchestration.transitions.input_changes import change_input
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to, step_of

pytestmark = pytest.mark.django_db(transaction=True)
LONG = 30.0  # seconds, for a machine that is busy
AMEND = {"data": {"name": "Eva"}, "actor": "ada", "reason": "a typo"}


@contextmanager
def in_flight(act):
    """Do something in a transaction of another session, which ends with the block; give its result."""
    done, go_on = threading.Event(), threading.Event()

    def run():
        try:
            with transaction.atomic():
                answer = act()
                done.set()
                assert go_on.wait(LONG)
            return answer
        finally:
            done.set()
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        assert done.wait(LONG)
        try:
            yield future
        finally:
            go_on.set()
            future.result()


@pytest.fixture
def task(monkeypatch):
    """Return a task under way, whose next step is pending."""
    first = Step(name="first", agent="greeter", action="greet", request={"to": "all"}, undo=None)
    hello = Step(
        name="hello", agent="greeter", action="greet", after=["first"], undo=None,
        request={"to": field("name")},
    )  # fmt: skip
    monkeypatch.setitem(registry.workflows, "two", Workflow(name="two", steps=[first, hello]))
    task = new_task("7", workflow="two")
    record([reply_to(request) for request in claimed()])
    assert step_of(task).process_state == "pending"
    return task


def claiming():
    return claim(["greeter"], "scheduler-1").requests["greeter"]


def changing(task):
    return lambda: change_input(task.id, registry.workflows["two"], **AMEND)


def stored(task):
    return step_of(task, "hello").request


def test_change_beside_a_claim_waits_for_it_and_is_refused(task):
    number = uuid4()
    with in_flight(claiming) as claim_in_flight:
        api.amend("two", "7", id=number, **AMEND)
        assert task_requests.take(10) == (0, 1)
    (request,) = claim_in_flight.result()
    assert task_requests.take(10) == (1, 0)
    assert TaskRequest.objects.get(request=number).refusal == "TAKEN"
    task.refresh_from_db()
    assert (request.payload, stored(task)) == ({"to": "Ada"}, {"to": "Ada"})
    assert task.data["name"] == "Ada"


def test_claim_beside_a_change_leaves_the_task_and_then_sends_the_new_value(task):
    with in_flight(changing(task)):
        assert claimed() == []
    (request,) = claimed()
    assert (request.payload, stored(task)) == ({"to": "Eva"}, {"to": "Eva"})


def without_locks(monkeypatch):
    """Read tasks without their locks: what was decided on them may be another thing by then."""
    locking = locked_task.locking(skip=False)
    reading = locking.replace("FOR NO KEY UPDATE", "")
    assert reading != locking
    monkeypatch.setattr(locked_task, "locking", lambda *, skip: reading)


WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def waits_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute(WAITS)
        return cursor.fetchone()[0] > 0


def changed_beside_a_claim(task):
    """Decide on a change while a claim is in flight, and write it after that; return the request sent."""

    def change():
        try:
            changing(task)()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with in_flight(claiming) as claim_in_flight:
            answer = pool.submit(change)
            wait_for(waits_for_a_lock, "the change waits for the claim")
        answer.result()
    return claim_in_flight.result()[0]


def test_change_that_was_decided_before_a_claim_is_not_written_over_it(task, monkeypatch):
    without_locks(monkeypatch)
    with pytest.raises(ConcurrentUpdate):
        changed_beside_a_claim(task)
    task.refresh_from_db()
    assert (stored(task), task.data["name"]) == ({"to": "Ada"}, "Ada")


def test_without_both_guards_the_state_store_has_another_request_than_was_sent(task, monkeypatch):
    """Shows that the tests above can fail."""
    without_locks(monkeypatch)
    guard = "(s.process_state, s.attempt, s.generation) = (r.state, r.attempt, r.generation)"
    unguarded = moves.REBUILT.statement.replace(guard, "true").replace("s.attempt = 0", "true")
    monkeypatch.setattr(moves.REBUILT, "statement", unguarded)
    request = changed_beside_a_claim(task)
    assert (request.payload, stored(task)) == ({"to": "Ada"}, {"to": "Eva"})
