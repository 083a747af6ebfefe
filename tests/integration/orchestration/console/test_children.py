"""Children on operators' pages: those of a step, and whose child a task is."""

import pytest
from django.urls import reverse

from orchestration.console.queries import task as queries
from orchestration.console.queries.children import MOST_CHILDREN
from orchestration.models import Step, Task
from orchestration.operations.undo_preview import undo_preview
from orchestration.transitions.replies import record
from tests.support import children, operators
from tests.support.engine import reply_to
from tests.support.page import query_count

pytestmark = pytest.mark.django_db


@pytest.fixture
def order(monkeypatch):
    """A task with three children, the last of them in error."""
    children.declare(monkeypatch)
    order, requests = children.begun(3, "A")
    record([reply_to(requests[0]), reply_to(requests[2], "rejected")])
    return order


@pytest.fixture
def operator():
    return operators.operator()


def opened(operator, task):
    return operator.get(reverse("ops:task", args=[task.id])).content.decode()


def listed(operator, query):
    shown = operator.get(reverse("ops:tasks"), {"q": query}).content.decode()
    tasks = Task.objects.values_list("id", "reference")
    return {reference for task, reference in tasks if reverse("ops:task", args=[task]) in shown}


def test_task_shows_its_children(operator, order):
    shown = opened(operator, order)
    step = Step.objects.get(task=order)
    assert f'data-children="{step.id}"' in shown
    kids = {child.reference: child.id for child in Task.objects.filter(parent=step)}
    places = [shown.index(f'data-child="{kids[f"A/parcels/{number}"]}"') for number in (2, 0, 1)]
    assert places == sorted(places)  # what is in error comes first
    for state in ("processed", "error", "processing"):
        assert f'data-state="{state}"' in shown
    assert reverse("ops:task", args=[kids["A/parcels/1"]]) in shown
    assert f"?q=parent:{order.id}" in shown
    assert "waits for its children" in shown
    assert reverse("ops:record", args=[step.id]) not in shown


def test_child_links_its_parent(operator, order):
    shown = opened(operator, Task.objects.get(reference="A/parcels/1"))
    assert f"{reverse('ops:task', args=[order.id])}#step-{Step.objects.get(task=order).id}" in str(
        shown
    )


def test_children_cost_two_queries(operator, order):
    address = reverse("ops:task", args=[order.id])
    few = query_count(operator, address)
    many, _ = children.begun(30, "B")
    (step,) = queries.task_detail(many.id).steps
    assert (step.children.count, len(step.children.first)) == (30, MOST_CHILDREN)
    assert query_count(operator, reverse("ops:task", args=[many.id])) <= few
    plain = Task.objects.get(reference="A/parcels/1")
    assert query_count(operator, reverse("ops:task", args=[plain.id])) <= few - 1


def test_list_shows_children_where_they_are_asked_for(operator, order):
    assert listed(operator, "") == {"A", "A/parcels/2"}  # and what is in error
    assert listed(operator, "parent:A") == {"A/parcels/0", "A/parcels/1", "A/parcels/2"}
    assert listed(operator, f"parent:{order.id} state:processed") == {"A/parcels/0"}
    assert listed(operator, "-parent:A") == {"A"}
    assert listed(operator, "with:background") == {"A", "A/parcels/0", "A/parcels/1", "A/parcels/2"}


def test_undo_of_a_task_with_children_is_shown_and_begun(order):
    operator = operators.browser(operators.person("ann", "operate", "undo"))
    address = reverse("ops:undo", args=[order.id])
    shown = operator.get(address).content.decode()
    assert "the undo of its children" in shown
    seen = undo_preview(order.id)["seen"]
    assert operator.post(address, {"reason": "no", "seen": seen}).status_code == 303
    order.refresh_from_db()
    assert order.state == "undoing"
