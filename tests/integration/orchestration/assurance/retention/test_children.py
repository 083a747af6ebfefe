"""A task goes with its children, and none of them without it."""

from datetime import timedelta

import pytest

from orchestration.assurance.retention import archive, removal
from orchestration.models import RemovedTask, RetentionPolicy, Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.holds import hold
from tests.support import children

pytestmark = pytest.mark.django_db


@pytest.fixture
def order(monkeypatch):
    """A task with two children that ended two days ago; tasks of both workflows are kept for one."""
    children.declare(monkeypatch)
    order = children.ended(2, "A")
    Task.objects.update(ended_at=DatabaseNow() - timedelta(days=2))
    for workflow in ("order", "parcel"):
        RetentionPolicy.objects.update_or_create(workflow=workflow, defaults={"keep_days": 1})
    return order


def references():
    return sorted(Task.objects.values_list("reference", flat=True))


def test_children_go_with_their_task(order):
    assert removal.remove_due(60) == 3
    assert (references(), Step.objects.count(), RemovedTask.objects.count()) == ([], 0, 3)


def test_children_stay_as_long_as_their_task(order):
    RetentionPolicy.objects.filter(workflow="order").update(keep_days=None)
    assert removal.remove_due(60) == 0
    assert references() == ["A", "A/parcels/0", "A/parcels/1"]


def test_task_stays_as_long_as_a_child(order):
    hold(actor="ann", reason="look", task=Task.objects.get(reference="A/parcels/1").id)
    assert removal.remove_due(60) == 0
    assert len(references()) == 3


def test_task_is_archived_and_put_back_with_its_children(order, tmp_path):
    before = list(Task.objects.order_by("id").values())
    reports = []
    assert archive.archive(tmp_path, None, ["order", "parcel"], reports.append) == 3
    assert references() == []
    assert archive.restore(tmp_path, reports.append) == 3
    assert list(Task.objects.order_by("id").values()) == before
