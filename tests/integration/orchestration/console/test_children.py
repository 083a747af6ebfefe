"""Children on operators' pages: those of a step, and whose child a task is."""

import pytest
from django.urls import reverse

from orchestration.console.queries import task as queries
from orchestration.models import Step, Task
from orchestration.transitions.replies import record
from tests.support import children
from tests.support.engine import reply_to
from tests.support.operators import browser, person
from tests.support.page import page, query_count

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
    return browser(person("olga", "Operator"))


def opened(operator, task):
    return page(operator.get(reverse("ops:task", args=[task.id])))


def listed(operator, query):
    shown = page(operator.get(reverse("ops:tasks"), {"q": query}))
    tasks = Task.objects.values_list("id", "reference")
    return {reference for task, reference in tasks if str(task) in str(shown)}


def test_task_shows_its_children(operator, order):
    shown = opened(operator, order)
    step = Step.objects.get(task=order)
    assert f'data-children="{step.id}"' in str(shown)
    kids = {child.reference: child.id for child in Task.objects.filter(parent=step)}
    places = [
        str(shown).index(f'data-child="{kids[f"A/parcels/{number}"]}"') for number in (2, 0, 1)
    ]
    assert places == sorted(places)  # what is in error comes first
    for state in ("processed", "error", "processing"):
        assert f'data-state="{state}"' in str(shown)
    assert reverse("ops:task", args=[kids["A/parcels/1"]]) in str(shown)
    assert f"?q=parent:{order.id}" in str(shown)
    assert "waits for its children" in str(shown)
    assert reverse("ops:record", args=[step.id]) not in str(shown)


def test_child_links_its_parent(operator, order):
    shown = opened(operator, Task.objects.get(reference="A/parcels/1"))
    assert f"{reverse('ops:task', args=[order.id])}#step-{Step.objects.get(task=order).id}" in str(
        shown
    )


def test_children_cost_two_queries(operator, order, monkeypatch):
    few = query_count(lambda: queries.task_detail(order.id))
    monkeypatch.setattr("tests.support.children.new_task", children.new_task)
    many, _ = children.begun(30, "B")
    detail = queries.task_detail(many.id)
    (step,) = detail.steps
    assert (step.children.count, len(step.children.first)) == (30, queries.MOST_CHILDREN)
    assert query_count(lambda: queries.task_detail(many.id)) <= few
    plain = Task.objects.get(reference="A/parcels/1")
    assert not any(step.children for step in queries.task_detail(plain.id).steps)


def test_list_shows_children_where_they_are_asked_for(operator, order):
    assert listed(operator, "") == {"A", "A/parcels/2"}  # and what is in error
    assert listed(operator, "parent:A") == {"A/parcels/0", "A/parcels/1", "A/parcels/2"}
    assert listed(operator, f"parent:{order.id} state:processed") == {"A/parcels/0"}
    assert listed(operator, "-parent:A") == {"A"}
    assert listed(operator, "with:background") == {"A", "A/parcels/0", "A/parcels/1", "A/parcels/2"}
