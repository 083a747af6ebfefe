"""The audit finds bulk operations that do not tell the truth, and is silent about those that do."""

from dataclasses import replace

import pytest

from orchestration import registry
from orchestration.models import Operation
from tests.support.engine import new_task, reply_to
from tests.support.operations import advance, answer, failed, running
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db

OPERATION = "UPDATE orchestration_operation SET {} WHERE act = 'resubmit'"
ITEM = "UPDATE orchestration_operationitem SET {} WHERE step_id = (SELECT min(step_id) FROM orchestration_operationitem)"  # noqa: E501


@pytest.fixture
def operation():
    """Three steps resubmitted; one of them failed again; and a hold, an undo and a task."""
    made = running(failed(3))
    advance(made)
    advance(made)
    answer(reply_to)
    advance(made)
    for act in ("hold", "undo"):
        other = running([new_task()], act)
        advance(other)
        answer(reply_to)
        advance(other)
    return made


def test_operation_run_by_the_engine_has_no_findings(operation):
    assert operation.state == "ended"
    assert Operation.objects.exclude(ended_at=None).count() == 3
    assert violations() == []


@pytest.mark.parametrize(
    "statement",
    [
        ITEM.format("state = 'sent', ended_at = NULL"),
        ITEM.format("state = 'waiting', ended_at = NULL"),
        ITEM.format("state = 'skipped', reason = 'x'"),
        OPERATION.format("fixed = fixed + 1"),
        OPERATION.format("again = 1, fixed = fixed - 1"),
        OPERATION.format("approval = 'too many', approved_by = ''"),
        OPERATION.format("approval = 'too many', approved_by = actor"),
        OPERATION.format(
            "approval = 'too many', approved_by = 'bob', approved_by_user = 7, actor_user = 7"
        ),
    ],
)
def test_operation_with_wrong_counts_is_found(operation, statement):
    plant(statement)
    named = {(breach.invariant, breach.reference) for breach in violations()}
    assert named == {(13, f"operation {operation.id}")}


def test_resubmitted_step_that_is_skipped_is_fixed(monkeypatch):
    greet = registry.workflows["greet"]
    steps = [replace(step, refused={"unclear": "pass"}) for step in greet.steps]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, steps=steps))
    operation = running(failed(1))
    advance(operation)
    answer(lambda request: reply_to(request, "rejected", code="unclear"))
    advance(operation)
    assert operation.item_set.get().state == "fixed"
    assert violations() == []


@pytest.mark.parametrize("state", ["fixed", "sent"])
def test_item_with_a_wrong_result_is_found(state):
    (task,) = failed(1)
    operation = running([task])
    advance(operation)
    answer(lambda request: reply_to(request, "rejected", code="no_route"))
    assert violations() == []
    ended = "clock_timestamp()" if state == "fixed" else "NULL"
    plant(ITEM.format(f"state = '{state}', ended_at = {ended}"))
    assert {(breach.invariant, breach.reference) for breach in violations()} == {
        (13, task.reference)
    }
