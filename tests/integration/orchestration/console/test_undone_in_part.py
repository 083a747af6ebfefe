"""The page of a task with steps that were undone alone."""

from uuid import uuid4

import pytest
from django.urls import reverse

from orchestration import registry
from orchestration.api import Step, Workflow, key
from orchestration.models import Task
from tests.support import operators
from tests.support.page import page

pytestmark = pytest.mark.django_db


def test_page_shows_what_was_undone_and_why(monkeypatch, run):
    steps = [
        Step(
            name=name,
            agent="greeter",
            action="greet",
            undo="take_back",
            undo_request={"key": key(name)},
        )
        for name in ("hotel", "car")
    ]
    monkeypatch.setitem(registry.workflows, "trip", Workflow(name="trip", steps=steps))
    trip = run.submit("trip")
    run.go()
    trip.handle.undo(actor="ann", reason="no car", id=uuid4(), steps=["car"])
    run.go()
    task = Task.objects.get()
    shown = page(operators.operator().get(reverse("ops:task", args=[task.id])))
    assert "Ended: all steps are done; 1 was undone" in shown.text
    assert "undo of car" in shown.text
    (event,) = [row.text for row in shown.all("tr") if "Undo requested" in row.text]
    assert "car" in event
