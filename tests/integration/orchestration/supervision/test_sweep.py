"""A sweep does all it can: one bad row, or one duty that fails, keeps nothing else waiting."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, Error, connection, transaction

from orchestration.database.batches import bisect
from orchestration.models import Alert, Attempt, Step, Task, UndoRequest
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.replies import record
from tests.support.database import kill
from tests.support.engine import (
    claimed,
    force,
    new_task,
    postpone_retries,
    reply_to,
    staff,
    step_of,
    sweep,
)
from tests.support.operators import LEADER

STUCK = "system/supervisor/stuck"
NO_NEW_STEP = """
SET CONSTRAINTS ALL IMMEDIATE;
CREATE FUNCTION no_new_step() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'a task without new steps'; END $$;
CREATE TRIGGER no_new_step BEFORE INSERT ON orchestration_step
    FOR EACH ROW WHEN (NEW.task_id = %(task)s) EXECUTE FUNCTION no_new_step()
"""


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()
    postpone_retries()


def expired(count):
    """Return tasks whose step failed in silence, the oldest first."""
    tasks = [new_task() for _ in range(count)]
    claimed()
    for age, task in enumerate(tasks):
        Step.objects.filter(task=task, process_state="processing").update(
            complete_by=DatabaseNow() - timedelta(seconds=100 - age)
        )
    return tasks


def plant(task, state):
    """Write a state past the guard that refuses it."""
    force(
        "UPDATE orchestration_task SET state = %(state)s, ended_at ="
        " CASE WHEN %(state)s IN ('processed', 'undone') THEN clock_timestamp() END"
        " WHERE id = %(task)s",
        {"state": state, "task": str(task.id)},
    )


def step_states(tasks):
    return [step_of(task).process_state for task in tasks]


@pytest.mark.django_db
@pytest.mark.parametrize("bad", [0, 3, 6])
def test_task_that_cannot_be_recovered_delays_no_other(monkeypatch, caplog, bad):
    tasks = expired(7)
    monkeypatch.setattr("orchestration.conf.BATCH_SIZE", 3)
    plant(tasks[bad], "undone")
    assert str(sweep(LEADER)) == "6 retried"
    assert step_states(tasks) == ["processing" if n == bad else "pending" for n in range(7)]
    assert not Attempt.objects.filter(step__task=tasks[bad]).exists()  # nothing was half done
    alert = Alert.objects.get(fingerprint=STUCK, closed_at=None)
    assert str(tasks[bad].id) in alert.detail
    assert "illegal move" in alert.detail
    assert f"task {tasks[bad].id} cannot be recovered" in caplog.text
    assert "Traceback" in caplog.text

    sweep(LEADER)
    assert Alert.objects.get(fingerprint=STUCK).count == 1
    plant(tasks[bad], "processing")
    assert str(sweep(LEADER)) == "1 retried"
    assert Alert.objects.get(fingerprint=STUCK).closed_at


@pytest.mark.django_db
def test_bad_tasks_beyond_a_batch_delay_no_other(monkeypatch):
    tasks = expired(6)
    monkeypatch.setattr("orchestration.conf.BATCH_SIZE", 2)
    for task in tasks[:5]:
        plant(task, "undone")
    assert str(sweep(LEADER)) == "1 retried"
    assert step_states(tasks) == ["processing"] * 5 + ["pending"]
    assert "noticed: 5," in Alert.objects.get(fingerprint=STUCK).detail


@pytest.mark.django_db
def test_task_that_cannot_be_undone_delays_no_other(monkeypatch, caplog):
    tasks = [new_task() for _ in range(3)]
    record([reply_to(request) for request in claimed()])
    record([reply_to(request, "rejected") for request in claimed()])
    Step.objects.filter(task__in=tasks, process_state="error").update(
        resolve_by=DatabaseNow() - timedelta(seconds=1)
    )
    with connection.cursor() as cursor:
        cursor.execute(NO_NEW_STEP, {"task": str(tasks[0].id)})
    monkeypatch.setattr("orchestration.conf.BATCH_SIZE", 2)
    assert sweep(LEADER)["to undo"] == 3
    assert [Task.objects.get(id=task.id).state for task in tasks] == ["error", "undoing", "undoing"]
    assert f"the undo of task {tasks[0].id} cannot begin" in caplog.text
    assert [request.task_id for request in UndoRequest.objects.all()] == [
        tasks[0].id
    ]  # tried again


@pytest.mark.django_db(transaction=True)
def test_failed_duty_delays_no_other():
    (task,) = expired(1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE orchestration_rollupmark RENAME TO away")
        try:
            with pytest.raises(ExceptionGroup, match="duties of the sweep failed") as failed:
                sweep(LEADER)
        finally:
            cursor.execute("ALTER TABLE away RENAME TO orchestration_rollupmark")
    (error,) = failed.value.exceptions
    assert isinstance(error, DatabaseError)
    assert step_states([task]) == ["pending"]
    alert = Alert.objects.get(closed_at=None)
    assert alert.title == "The housekeeper fails to roll up statistics"
    assert 'relation "orchestration_rollupmark" does not exist' in alert.detail
    sweep(LEADER)
    assert not Alert.objects.filter(closed_at=None).exists()


def test_only_failing_items_are_set_aside_and_the_order_is_kept():
    done, aside = [], []

    def deal(items):
        if bad := {3, 4, 9}.intersection(items):
            raise ValueError(bad)
        done.extend(items)
        return len(items)

    assert bisect(range(10), deal, lambda item, error: aside.append((item, str(error)))) == 10
    assert done == [0, 1, 2, 5, 6, 7, 8]
    assert aside == [(3, "{3}"), (4, "{4}"), (9, "{9}")]
    assert bisect([], deal, print) == 0


def failing(bad):
    def deal(items):
        if bad & set(items):
            raise ValueError("no")
        return len(items)

    return deal


def test_few_items_are_set_aside_when_all_fail_alike():
    aside = []
    with pytest.raises(ValueError, match="no"):
        bisect(range(200), failing(set(range(200))), lambda item, _: aside.append(item))
    assert aside == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="no"):
        bisect(range(9), failing(set(range(9))), lambda item, _: aside.append(item), patience=2)
    assert aside[5:] == [0, 1]


def test_failing_items_are_set_aside_if_one_works_or_none_is_left():
    aside = []
    assert bisect(range(20), failing(set(range(2, 20))), lambda item, _: aside.append(item)) == 20
    assert aside == list(range(2, 20))
    assert bisect(range(5), failing(set(range(5))), lambda *_: None) == 5


@pytest.mark.django_db(transaction=True)
def test_unavailable_database_sets_no_item_aside():
    def deal(_):
        kill()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    with pytest.raises(Error):
        bisect([1], deal, lambda *_: pytest.fail("it was set aside"))
    connection.close()


@pytest.mark.django_db
def test_statement_timeout_is_attributed_to_its_item():
    def deal(items):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 10")
            cursor.execute("SELECT pg_sleep(%s)", [5 if 1 in items else 0])
        return len(items)

    aside = []
    assert bisect([1, 2], deal, lambda item, _: aside.append(item)) == 2
    assert aside == [1]
