"""Two housekeepers at once, and one that dies: a due time is one task."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction

from orchestration import api, submission
from orchestration.database import clock
from orchestration.housekeeping import agent_rows
from orchestration.models import Schedule, Submission, Task
from orchestration.schedules import submitting

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_schedules")]


@pytest.fixture
def row():
    """A schedule whose first due time has just come."""
    agent_rows.ensure()
    start = clock.database_now().replace(microsecond=0) + timedelta(seconds=60)
    api.schedule("race", workflow="greet", data={"name": "Ada"}, every=3600, start_at=start)
    return Schedule.objects.get()


def look(row):
    return submitting.submit(row.due_at + timedelta(seconds=1), [row.id])


def beside(monkeypatch, point, act):
    """Have another housekeeper act as this one reaches a point; return what that did, once it has."""
    real, results = getattr(submitting, point), []

    def there():
        try:
            return act()
        finally:
            connection.close()

    def reached(*arguments):
        if threading.current_thread() is threading.main_thread() and not results:
            with ThreadPoolExecutor(1) as pool:
                results.append(pool.submit(there).result(30))
        return real(*arguments)

    monkeypatch.setattr(submitting, point, reached)
    return results


def tasks():
    """Take all submissions; return the references of the tasks."""
    while submission.take(10):
        pass
    assert not Submission.objects.exists()
    return list(Task.objects.values_list("reference", flat=True))


@pytest.fixture
def unlocked(monkeypatch):
    """Have schedules read without a lock: two housekeepers then decide by the same row."""
    monkeypatch.setattr(submitting.sql, "lock", lambda rows, **_: rows)


@pytest.fixture
def free_references(monkeypatch):
    """Give each submission a reference of its own."""
    monkeypatch.setattr(submitting, "reference", lambda name, due: f"{name}/{uuid4()}")


POINTS = (
    "going",
    "_post",
    "submit_many",
)  # before it knows of the last task, of the references, and after


@pytest.mark.parametrize("point", POINTS)
def test_second_housekeeper_passes_over_what_the_first_looks_at(monkeypatch, row, point):
    other = beside(monkeypatch, point, lambda: look(row))
    assert look(row) == (1, 1)
    assert other == [(0, 0)]
    assert len(tasks()) == 1
    assert Schedule.objects.get().submitted == 1


@pytest.mark.usefixtures("unlocked")
@pytest.mark.parametrize("at_once", [True, False], ids=["a submission", "a task"])
@pytest.mark.parametrize("point", POINTS)
def test_reference_makes_one_task_of_two_housekeepers_without_locks(
    monkeypatch, row, point, at_once
):
    other = beside(monkeypatch, point, lambda: (look(row), at_once or tasks()))
    look(row)
    assert other[0][0] == (1, 1)
    assert tasks() == [f"race/{row.due_at:%Y-%m-%dT%H:%M:%SZ}"]
    assert Schedule.objects.get().due_at == row.due_at + timedelta(hours=1)


@pytest.mark.usefixtures("unlocked", "free_references")
@pytest.mark.parametrize("point", POINTS)
def test_without_locks_and_references_there_are_two(monkeypatch, row, point):
    beside(monkeypatch, point, lambda: look(row))
    look(row)
    assert len(tasks()) == 2


@pytest.mark.usefixtures("free_references")
def test_without_references_a_row_of_before_has_two(row):
    look(row)
    Schedule.objects.update(due_at=row.due_at, look_at=row.look_at, last_reference="")
    look(row)
    assert len(tasks()) == 2


def test_row_of_before_has_one(row):
    look(row)
    Schedule.objects.update(due_at=row.due_at, look_at=row.look_at, last_reference="")
    look(row)
    assert len(tasks()) == 1


@pytest.mark.parametrize("point", ["going", "_post", "submit_many"])
def test_what_fails_before_the_commit_leaves_nothing(monkeypatch, row, point):
    """A housekeeper that dies has its transaction rolled back, as here."""

    def die(*_):
        raise KeyboardInterrupt

    before = Schedule.objects.values().get()
    with monkeypatch.context() as patched:
        patched.setattr(submitting, point, die)
        with pytest.raises(KeyboardInterrupt):
            look(row)
    assert Schedule.objects.values().get() == before
    assert not Submission.objects.exists()
    assert look(row) == (1, 1)


def test_change_that_is_under_way_is_waited_for_by_no_housekeeper(row):
    """An admin's form has the row locked: it is passed over, and then due by its new time or not at all."""
    with transaction.atomic():
        changed = Schedule.objects.select_for_update().get()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(apart, row).result(30) == (0, 0)
        changed.start_at += timedelta(hours=1)
        changed.save()
    assert look(row) == (0, 0)
    assert tasks() == []


def apart(row):
    try:
        return look(row)
    finally:
        connection.close()
