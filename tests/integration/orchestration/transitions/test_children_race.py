"""Children that end at the same time in several schedulers end their step once."""

import threading

import pytest
from django.db import transaction

from orchestration import scheduler
from orchestration.models import Join, Step, Task
from orchestration.states import LOCAL
from orchestration.transitions import children as making
from orchestration.transitions import joined, joins
from orchestration.transitions.replies import record
from orchestration.transitions.undo import undo
from orchestration.workers import scheduler_duties
from tests.support import children
from tests.support.database import another
from tests.support.engine import new_task, reply_to
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(transaction=True)

# A look at the other children that takes no lock of them
UNLOCKED = joins.ENDED.replace("FOR NO KEY UPDATE SKIP LOCKED", "")


@pytest.fixture
def declare(monkeypatch):
    """The workflow of a step with children."""
    children.declare(monkeypatch)


def end_side_by_side(requests):
    """Record the replies of two schedulers, before either has committed."""
    both = threading.Barrier(2)

    def end(request):
        with transaction.atomic():
            record([reply_to(request)])
            both.wait()

    at_once(
        {number: lambda request=request: end(request) for number, request in enumerate(requests)}
    )


def test_last_two_children_end_at_the_same_time(declare):
    order, requests = children.begun(2)
    end_side_by_side(requests)
    assert Join.objects.exists()
    scheduler_duties.run()
    order.refresh_from_db()
    assert (order.state, Step.objects.get(task=order).result) == (
        "processed", {"items": [{"to": 0}, {"to": 1}]},
    )  # fmt: skip


def test_without_the_lock_no_session_ends_the_step(declare, monkeypatch):
    """The guard is needed: each of the two sees that the other has not ended."""
    monkeypatch.setattr(joins, "ENDED", UNLOCKED)
    order, requests = children.begun(2)
    end_side_by_side(requests)
    assert not Join.objects.exists()
    assert set(Task.objects.filter(parent__task=order).values_list("state", flat=True)) == {
        "processed"
    }


def test_child_that_ends_before_others_asks_for_no_look(declare):
    _, requests = children.begun(3)
    record([reply_to(requests[0])])
    assert not Join.objects.exists()
    record([reply_to(requests[2])])
    assert not Join.objects.exists()
    record([reply_to(requests[1])])
    assert Join.objects.count() == 1


def test_many_children_end_in_several_schedulers(declare):
    """However replies are shared out, each step ends once."""
    orders = [children.begun(4) for _ in range(25)]
    requests = [request for _, of_order in orders for request in of_order]

    def end(number):
        for request in requests[number::3]:
            record([reply_to(request)])
            scheduler_duties.run()

    at_once({number: lambda number=number: end(number) for number in range(3)})
    left = [
        request
        for request in requests
        if Step.objects.get(id=request.step).process_state != "processed"
    ]
    record([reply_to(request) for request in left])  # whose tasks others had locked
    scheduler_duties.run()
    assert set(Task.objects.values_list("state", flat=True)) == {"processed"}
    assert not Join.objects.exists()


def test_two_schedulers_look_at_the_same_children(declare):
    order, requests = children.begun(2)
    record([reply_to(request) for request in requests])
    with another() as cursor:
        cursor.execute(
            "BEGIN; SELECT FROM orchestration_task WHERE id = %s FOR NO KEY UPDATE", [order.id]
        )
        assert joined.join([order.id]).handled == 0
        cursor.execute("ROLLBACK")
    assert Join.objects.exists()
    assert joined.join([order.id]).handled == 1
    order.refresh_from_db()
    assert order.state == "processed"


def test_child_that_is_locked_is_undone_later(declare):
    order, _ = children.begun(2)
    undo(order.id, actor="ann", reason="no")
    scheduler.run_once("scheduler-1", [], [LOCAL])
    child = Task.objects.filter(parent__task=order).first()
    with another() as cursor:
        cursor.execute(
            "BEGIN; SELECT FROM orchestration_task WHERE id = %s FOR NO KEY UPDATE", [child.id]
        )
        scheduler_duties.run()
        child.refresh_from_db()
        assert child.undo_at is None
        assert Join.objects.exists()
        cursor.execute("ROLLBACK")
    scheduler_duties.run()
    child.refresh_from_db()
    assert child.undo_at is not None


def test_scheduler_that_dies_as_it_makes_children_has_made_none(declare, monkeypatch):
    monkeypatch.setattr("orchestration.conf.BATCH_SIZE", 2)
    order = new_task(workflow="order", data={"to": [1, 2, 3]})
    real, parts = making.create.write, []

    def write(part):
        parts.append(part)
        if len(parts) == 2:
            raise KeyboardInterrupt
        real(part)

    with monkeypatch.context() as patched:
        patched.setattr(making.create, "write", write)
        with pytest.raises(KeyboardInterrupt):
            scheduler.run_once("scheduler-1", [], [LOCAL])
    assert Task.objects.count() == 1
    assert Step.objects.get(task=order).process_state == "pending"
    scheduler.run_once("scheduler-2", [], [LOCAL])
    assert Task.objects.filter(parent__task=order).count() == 3
