"""What the audit says of steps with children, and of children."""

import pytest

from orchestration import scheduler
from orchestration.models import Task
from orchestration.states import LOCAL
from orchestration.transitions.replies import record
from orchestration.transitions.undo import undo
from orchestration.workers import scheduler_duties
from tests.support import children
from tests.support.engine import claimed, reply_to
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db
LONG_AGO = "clock_timestamp() - interval '2 hours'"


@pytest.fixture
def order(monkeypatch):
    """A task with two children under way."""
    children.declare(monkeypatch)
    order, requests = children.begun(2, "A")
    order.requests = requests
    return order


def broken():
    return sorted((violation.invariant, violation.reference) for violation in violations())


def end(order):
    record([reply_to(request) for request in order.requests])
    scheduler_duties.run()
    order.refresh_from_db()


def test_sound_children_have_no_violation(order):
    assert broken() == []
    end(order)
    assert (order.state, broken()) == ("processed", [])
    undo(order.id, actor="ann", reason="no")
    scheduler.run_once("scheduler-1", [], [LOCAL])
    scheduler_duties.run()
    order.requests = claimed()
    end(order)
    assert set(Task.objects.values_list("state", flat=True)) == {"undone"}
    assert broken() == []


def test_children_that_have_all_ended(order):
    plant(
        f"UPDATE orchestration_task SET state = 'processed', ended_at = {LONG_AGO} WHERE parent_id > 0"
    )
    plant(f"UPDATE orchestration_step s SET process_state = 'processed', result = '{{}}',"
        f" ended_at = {LONG_AGO}"
          " FROM orchestration_task t WHERE t.id = s.task_id AND t.parent_id > 0")  # fmt: skip
    assert (1, "A") in broken()


def test_processed_step_with_a_child_that_goes_on(order):
    plant(
        "UPDATE orchestration_task SET state = 'processed', ended_at = clock_timestamp()"
        " WHERE parent_id IS NULL"
    )
    plant(f"UPDATE orchestration_step SET process_state = 'processed', result = '{{}}',"
        f" ended_at = {LONG_AGO}"
          " WHERE name = 'parcels'")  # fmt: skip
    assert (5, "A") in broken()


def test_child_without_its_step(order):
    plant("UPDATE orchestration_task SET parent_id = 999999 WHERE position = 1")
    assert (2, "A/parcels/1") in broken()


def test_child_of_a_step_that_has_none(order):
    plant("UPDATE orchestration_step SET flow = NULL WHERE name = 'parcels'")
    assert {(2, "A/parcels/0"), (2, "A/parcels/1")} <= set(broken())


def test_two_children_for_an_item(order):
    plant("UPDATE orchestration_task SET position = 0 WHERE position = 1")
    assert (2, "A") in broken()


def test_child_that_stands_after_the_undo(order):
    end(order)
    undo(order.id, actor="ann", reason="no")
    plant(f"UPDATE orchestration_step SET process_state = 'processed', result = '{{}}',"
        f" ended_at = {LONG_AGO},"
          " attempt = 1 WHERE name = 'parcels' AND direction = 'undo'")  # fmt: skip
    assert (7, "A") in broken()


def test_child_whose_undo_does_not_begin(order):
    end(order)
    undo(order.id, actor="ann", reason="no")
    scheduler.run_once("scheduler-1", [], [LOCAL])
    plant(f"UPDATE orchestration_step SET dispatched_at = {LONG_AGO} WHERE direction = 'undo'")
    assert (1, "A") in broken()
