"""What is held, or was, makes neither a claim nor a sweep dearer, and keeps nothing waiting."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction

from orchestration import conf, scheduler
from orchestration.cluster.leader_memory import Memory
from orchestration.database import sql
from orchestration.models import Hold, Policy, RollUpMark, Step, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.claim import claim
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.holds import hold, hold_tasks, release, release_tasks, unpark
from tests.support.database import another
from tests.support.engine import claimed, new_task, staff, step_of, sweep
from tests.support.operators import LEADER
from tests.support.plans import spent

MANY = 2_000
WHO = {"actor": "olga", "reason": "they move"}


def new_tasks(count):
    with transaction.atomic():
        return create(
            [
                NewTask(workflow="greet", reference=uuid4().hex, data={"name": "Ada"})
                for _ in range(count)
            ]
        )


def vacuum():
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


@pytest.mark.django_db(transaction=True)
def test_a_claim_and_a_sweep_cost_the_same_while_many_are_held_and_after():
    staff()
    hence = DatabaseNow() + timedelta(hours=1)  # however slow the test
    Worker.objects.update(seen_at=hence)
    RollUpMark.objects.update(until=hence, noted_until=hence, noted_xid=1)
    Policy.objects.filter(agent="greeter").update(window=50)
    held = new_tasks(MANY)
    new_tasks(MANY)
    acts = {
        "claim": lambda: claim(["greeter"], "scheduler-1"),
        "sweep": lambda: sweep(LEADER, memory=Memory()),
    }

    def measured():
        sweep(LEADER)
        vacuum()
        return {name: spent(act) for name, act in acts.items()}

    before = measured()
    assert None in set(hold_tasks(held, **WHO, operation=None).values())
    costs = {"held": measured()}
    release_tasks(held, **WHO, operation=None)
    costs["released"] = measured()
    for when, cost_then in costs.items():
        for act, (statements, read) in cost_then.items():
            assert statements <= before[act][0], (when, act)
            assert read <= 1.2 * before[act][1], (when, act, before[act], cost_then[act])


@pytest.mark.django_db
class TestHeldStepsAhead:
    """More of them than a turn looks at stand before one that may go."""

    @pytest.fixture(autouse=True)
    def _ahead(self):
        Policy.objects.filter(agent="greeter").update(window=1)
        new_tasks(40)
        hold(workflow="greet", step="hello", **WHO)
        self.free = new_task()
        Step.objects.filter(task=self.free, name="hello").update(name="other")

    def test_it_goes_with_the_turns_that_follow_at_once(self):
        first = scheduler.run_once("scheduler-1", [], ["greeter"])
        assert first.more == {"greeter"}
        second = scheduler.run_once("scheduler-1", [], first.more)
        assert second.more == set()
        assert step_of(self.free, "other").process_state == "processing"

    def test_they_are_parked_in_one_statement_and_given_back(self):
        claimed()
        assert Step.objects.filter(held_by__isnull=False).count() == 40
        release(Hold.objects.get().id, **WHO)
        assert unpark() == 40
        assert Hold.objects.get().cleared
        assert not Step.objects.filter(held_by__isnull=False).exists()


@pytest.mark.django_db
def test_a_sweep_lets_go_for_a_while_and_the_next_goes_on(monkeypatch):
    monkeypatch.setattr(conf, "DUTY_BUDGET_S", 0.0)
    monkeypatch.setattr(conf, "BATCH_SIZE", 4)
    hold(workflow="greet", step="hello", **WHO)
    new_tasks(10)
    while Step.objects.filter(held_by=None, name="hello").exists():
        claimed()
    release(Hold.objects.get().id, **WHO)
    assert [unpark() for _ in range(4)] == [4, 4, 2, 0]


@pytest.mark.django_db(transaction=True)
class TestHoldsThatChangeMeanwhile:
    def test_a_step_is_not_parked_for_a_hold_that_is_being_released(self):
        made = hold(workflow="greet", step="hello", **WHO)
        task = new_task()
        with another() as operator:
            operator.execute("BEGIN")
            operator.execute("UPDATE orchestration_hold SET until = clock_timestamp()")
            turn = scheduler.run_once("scheduler-1", [], ["greeter"])
            operator.execute("COMMIT")
        assert turn.more == set()
        assert step_of(task).held_by_id is None
        unpark()
        assert Hold.objects.get(id=made.id).cleared
        assert len(claimed()) == 1

    def test_a_hold_ends_only_after_what_is_being_parked_for_it(self):
        hold(workflow="greet", step="hello", **WHO)
        new_task()
        with another() as operator:
            operator.execute("SET lock_timeout = '50ms'")
            with transaction.atomic():
                claimed()
                assert _is_kept(operator)
            assert not _is_kept(operator)
        assert unpark() == 1

    def test_a_hold_with_a_step_that_is_locked_is_cleared_later(self):
        made = hold(workflow="greet", step="hello", **WHO)
        new_task()
        claimed()
        release(made.id, **WHO)
        with another() as other:
            other.execute("BEGIN; SELECT FROM orchestration_step FOR UPDATE")
            assert unpark() == 0
            assert not Hold.objects.get(id=made.id).cleared
            other.execute("ROLLBACK")
        assert unpark() == 1


def _is_kept(cursor):
    """Return whether a hold cannot be released at this moment."""
    from psycopg2.errors import LockNotAvailable

    try:
        cursor.execute("UPDATE orchestration_hold SET until = clock_timestamp()")
    except LockNotAvailable:
        return True
    return False


@pytest.mark.django_db
def test_a_task_that_is_held_waits_at_once_and_what_follows_in_it_too():
    task = new_task()
    hold(task=task.id, **WHO)
    assert step_of(task).held_by_id is not None
    assert claimed() == []
    sql.run("UPDATE orchestration_step SET held_by_id = NULL", {})  # as one that follows
    assert claimed() == []
    assert step_of(task).held_by_id is not None


@pytest.mark.django_db
def test_old_holds_are_cleared_whether_anything_was_parked_for_them_or_not():
    tasks = new_tasks(3)
    hold_tasks(tasks, **WHO, operation=None)
    release_tasks(tasks[:2], **WHO, operation=None)
    hold(agent="greeter", **WHO)
    release(Hold.objects.get(agent="greeter").id, **WHO)
    assert unpark() == 2
    assert Hold.objects.filter(cleared=True).count() == 3
    assert unpark() == 0
