"""Workflows in one process, on a fake clock and with scripted services."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection

from orchestration import api, registry
from orchestration.database import clock
from orchestration.messaging import queues
from orchestration.models import Alert, Event, Gate, Task, Worker
from orchestration.registry import NotRegistered
from orchestration.testing import fake_clock
from orchestration.testing.outcomes import (
    done,
    in_doubt,
    late,
    raises,
    rejected,
    silent,
    transient,
)
from orchestration.testing.run import running
from orchestration.transitions.holds import hold

GREETED = done(id="g1")


@pytest.fixture
def greet(run):
    """A task of two steps with one call in an attempt."""
    run.policy("greeter", tries=1)
    run.script("greeter.greet", GREETED)
    return run.submit("greet", {"name": "Ada"})


@pytest.fixture
def redis_away(monkeypatch):
    def refuse():
        raise AssertionError("Redis was asked")

    monkeypatch.setattr(queues, "_connection", refuse)


@pytest.mark.django_db
def test_clock_moves_in_a_run_that_is_asked_for_in_the_midst_of_a_test():
    """The functions of the clock may have been made in the transaction of an earlier test."""
    fake_clock.install()
    with connection.cursor() as cursor:  # away by their names, as columns have them as a default
        cursor.execute("ALTER SCHEMA sas_testing RENAME TO rolled_back")
    with running() as run:
        run.wait(60)
        assert clock.database_now() == run.clock.start + timedelta(seconds=60)


def ask_undo(task):
    api.request_undo(task.workflow, task.reference, actor="ann", reason="no more", id=uuid4())


@pytest.mark.usefixtures("redis_away")
def test_task_is_done_at_one_moment_without_redis(run, greet):
    run.script("greeter.greet", done(id="g1"), done({"id": "g2"}))
    assert greet.state == "submitted"
    run.go()
    assert greet.state == "processed"
    assert greet.steps == {"hello": "processed", "again": "processed"}
    first, second = run.calls("greeter.greet")
    assert (first.step, first.payload) == ("hello", {"to": "Ada"})
    assert second.payload == {"to": "Ada", "heard": "g1"}
    assert first.key != second.key
    assert greet.result("again") == {"id": "g2"}
    assert run.clock.elapsed == 0


@pytest.mark.parametrize("failure", [transient(), in_doubt(), raises(ValueError("a bug"))])
def test_failure_is_retried_after_its_backoff_under_the_same_key(run, greet, failure):
    run.script("greeter.greet", failure, GREETED)
    run.go()
    assert greet.steps["hello"] == "pending"
    assert run.jump() == 1.0  # the policy's backoff
    assert greet.state == "processed"
    first, second, _ = run.calls("greeter.greet")
    assert (first.key, first.attempt) == (second.key, second.attempt - 1)
    assert second.at - first.at == 1.0


def test_tries_within_an_attempt_take_outcomes_and_no_time(run, greet):
    run.policy("greeter", tries=3)
    run.script("greeter.greet", transient(), transient(), GREETED)
    run.go()
    assert [call.attempt for call in greet.calls()] == [1, 1, 1, 1]
    assert greet.state == "processed"


def test_effect_of_a_call_in_doubt_stands_and_a_repeat_gets_it(run, greet):
    run.script("greeter.greet", in_doubt(happened=True), done(id="g2"))
    run.finish()
    # the greeter declares no shape of its results, so the result is empty
    assert (greet.steps["hello"], greet.result("hello")) == ("processed", {})
    assert [call.step for call in greet.calls()] == ["hello", "hello"]


def test_refusal_is_an_error_and_a_resubmission_has_another_key(run, greet):
    run.script("greeter.greet", rejected("rude"), GREETED)
    run.go()
    assert (greet.state, greet.step("hello").error_code) == ("error", "rude")
    api.request_resubmit(
        "greet", greet.reference, "hello", attempt=1, actor="ann", reason="mended", id=uuid4()
    )
    run.go()
    assert greet.state == "processed"
    first, second, _ = greet.calls()
    assert first.key != second.key


def test_silent_agent_is_given_up_at_the_end_of_its_time(run, greet):
    run.script("greeter.greet", silent(), GREETED)
    run.go()
    assert greet.steps["hello"] == "processing"
    assert run.jump() == pytest.approx(10.0)  # time allowed
    assert greet.steps["hello"] == "pending"
    run.finish()
    assert greet.state == "processed"
    first, second, _ = greet.calls()
    assert first.key == second.key


def test_late_reply_changes_nothing(run, greet):
    run.script("greeter.greet", late({"id": "g1"}, by=0.5), transient(), GREETED)
    run.jump()
    run.wait(0.5)
    assert greet.steps["hello"] == "pending"
    assert Event.objects.filter(kind="refused", attempt=1).count() == 1
    run.finish()
    assert greet.result("hello") == {"id": "g1"}


def test_threshold_of_failures_ends_in_an_error(run, greet):
    run.policy("greeter", failure_threshold=3)
    run.script("greeter.greet", transient("down"))
    run.finish()
    assert [call.at for call in greet.calls()] == [0.0, 1.0, 3.0]
    assert (greet.state, greet.step("hello").error_code) == ("error", "down")
    assert Alert.objects.filter(closed_at=None).count() >= 1


def test_step_has_a_threshold_of_its_own(run, greet):
    run.step_policy("greet", "hello", failure_threshold=2)
    run.script("greeter.greet", transient("down"))
    run.finish()
    assert ([call.at for call in greet.calls()], greet.state) == ([0.0, 1.0], "error")
    with pytest.raises(LookupError, match="no step 'hallo'"):
        run.step_policy("greet", "hallo", failure_threshold=2)


def test_undo_takes_back_in_the_reverse_order(run, greet):
    run.go()
    ask_undo(greet)
    run.go()
    assert greet.state == "undone"
    assert greet.undone == ["again", "hello"]
    taken_back = run.calls("greeter.take_back")
    assert [call.direction for call in taken_back] == ["undo", "undo"]
    hello, again = run.calls("greeter.greet")
    assert [call.payload["key"] for call in taken_back] == [again.key, hello.key]


def test_failed_undo_is_repeated_before_the_next(run, greet):
    run.go()
    run.script("greeter.take_back", transient(), done())
    ask_undo(greet)
    run.go()
    assert (greet.state, greet.undone) == ("undoing", [])
    run.finish()
    assert greet.undone == ["again", "hello"]
    assert [call.step for call in run.calls("greeter.take_back")] == ["again", "again", "hello"]


def test_script_of_one_task_leaves_others_alone(run, greet):
    other = run.submit("greet", {"name": "Bob"}, reference="bob")
    run.script("greeter.greet", rejected("rude"), reference="bob")
    run.go()
    assert (greet.state, other.state) == ("processed", "error")


def test_outcome_may_be_a_function_of_the_call(run, greet):
    run.script("greeter.greet", lambda call: {"id": call.payload["to"].upper()})
    run.go()
    assert greet.result("hello") == {"id": "ADA"}


def test_script_of_an_unknown_action_names_the_nearest(run):
    with pytest.raises(NotRegistered, match="did you mean 'greet'"):
        run.script("greeter.great", done())
    with pytest.raises(NotRegistered, match="did you mean 'greeter'"):
        run.script("greater.greet", done())


def test_failing_service_opens_the_breaker_and_time_closes_it(run):
    run.policy("greeter", tries=1, failure_threshold=20)
    tasks = [run.submit("greet", {"name": "Ada"}) for _ in range(8)]
    run.script("greeter.greet", *[transient()] * 12, GREETED)
    run.go()
    assert Gate.objects.get(agent="greeter").state == "open"
    run.finish()
    assert {task.state for task in tasks} == {"processed"}
    assert Gate.objects.get(agent="greeter").state == "closed"


def test_service_that_fails_without_end_is_not_waited_for(run, monkeypatch):
    monkeypatch.setattr("orchestration.testing.run.MOST_JUMPS", 9)
    for _ in range(8):
        run.submit("greet", {"name": "Ada"})
    run.script("greeter.greet", transient())
    with pytest.raises(AssertionError, match="more is due"):
        run.finish()  # the breaker stays open, and failures do not count


def test_hold_keeps_a_task(run, greet):
    hold(agent="greeter", actor="olga", reason="maintenance")
    run.wait(3600)
    assert (greet.steps["hello"], run.calls("greeter.greet")) == ("pending", [])


def test_refused_submission(run, monkeypatch):
    def refuse(submitted):
        raise api.Refused("not today")

    greet = registry.workflows["greet"]
    monkeypatch.setitem(
        registry.workflows, "greet", api.Workflow(name="greet", steps=greet.steps, record=refuse)
    )
    task = run.submit("greet", {"name": "Ada"})
    run.go()
    assert task.state == "refused"
    with pytest.raises(LookupError, match="refused"):
        assert task.steps


class TestTime:
    def read(self, expression):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {expression}")
            return cursor.fetchone()[0]

    @pytest.mark.parametrize("name", ["clock_timestamp()", "statement_timestamp()", "now()"])
    def test_database_has_the_time_of_the_test(self, run, name):
        assert self.read(name) == run.clock.now
        run.clock.move(86_400)
        assert self.read(name) == run.clock.now == run.clock.start + timedelta(days=1)
        assert clock.now() == pytest.approx(run.clock.now.timestamp(), abs=0.001)

    def test_defaults_of_columns_have_it(self, run, greet):
        run.clock.move(86_400)
        run.go()
        task = Task.objects.get()
        assert task.created_at == task.ended_at == run.clock.now

    def test_workers_live_on(self, run):
        run.wait(3600)
        assert set(Worker.objects.values_list("seen_at", flat=True)) == {run.clock.now}

    def test_wait_ends_at_its_time_and_does_what_is_due_meanwhile(self, run, greet):
        run.script("greeter.greet", transient(), GREETED)
        run.wait(5)
        assert greet.state == "processed"
        assert run.clock.elapsed == 5

    def test_nothing_is_due_when_all_has_ended(self, run, greet):
        run.go()
        assert run.next_moment() is None
        assert run.jump() == 0.0


@pytest.mark.django_db(transaction=True)
def test_run_in_a_database_that_commits(run):
    run.script("greeter.greet", transient(), GREETED)
    task = run.submit("greet", {"name": "Ada"})
    run.finish()
    assert task.state == "processed"


@pytest.mark.django_db
def test_time_is_real_outside_of_runs():
    before = clock.database_now()
    assert clock.database_now() > before
