"""Several schedulers, and other sessions' locks, around steps that need no agent."""

from collections import Counter

import pytest

from orchestration import registry, scheduler
from orchestration.models import Attempt, Incident, Step, Task
from orchestration.payloads.placeholders import field, result
from orchestration.states import LOCAL
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.database import another
from tests.support.engine import new_task
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 300


@pytest.fixture
def calls(monkeypatch):
    """Declare a workflow whose two functions note what they are called with; return the notes."""
    seen = []

    def note(payload):
        seen.append((payload["task"], payload["step"]))
        if payload["task"] < 0:
            raise ValueError("it is negative")
        return {"ok": True}

    first = Declared(name="first", compute=note, request={"task": field("n"), "step": 1})
    last = Declared(
        name="last", compute=note, after=["first"],
        request={"task": field("n"), "step": 2, "ok": result("first", "ok")},
    )  # fmt: skip
    monkeypatch.setitem(registry.workflows, "notes", Workflow(name="notes", steps=[first, last]))
    yield seen
    scheduler._paused.clear()


def turns(by):
    """Take turns until there is nothing to do."""
    look_at = {LOCAL}
    while look_at:
        look_at = scheduler.run_once(by, [], look_at).more
    return Step.objects.filter(process_state="pending", run_after=None).count()


def test_concurrent_schedulers_compute_each_step_once(calls):
    for number in range(MANY):
        new_task(workflow="notes", data={"n": number})
    at_once({name: lambda name=name: turns(name) for name in ("scheduler-1", "scheduler-2")})
    turns("scheduler-3")  # what both passed over as the other had it
    assert set(Task.objects.values_list("state", flat=True)) == {"processed"}
    assert set(Counter(calls).values()) == {1}
    assert len(calls) == 2 * MANY
    assert Attempt.objects.count() == 2 * MANY
    assert set(Attempt.objects.values_list("number", flat=True)) == {1}


def test_step_whose_refusal_needs_a_locked_row_waits_alone(calls):
    new_task(workflow="notes", data={"n": -1})
    turns("scheduler-1")
    assert Incident.objects.count() == 1
    second, good = (new_task(workflow="notes", data={"n": number}) for number in (-2, 7))
    with another() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM orchestration_incident FOR UPDATE")
        again_in = scheduler.run_once("scheduler-1", [], {LOCAL}).again_in
        task_states = dict(Task.objects.values_list("id", "state"))
        assert (task_states[second.id], task_states[good.id]) == ("pending", "processed")
        step = Step.objects.get(task=second, name="first")
        assert (step.process_state, step.attempt, step.locked_by) == ("pending", 0, None)
        assert again_in is not None
        cursor.execute("ROLLBACK")
    turns("scheduler-1")
    assert Task.objects.get(id=second.id).state == "error"


def test_step_of_a_locked_task_is_skipped(calls):
    locked, free = (new_task(workflow="notes", data={"n": number}) for number in (1, 2))
    with another() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM orchestration_task WHERE id = %s FOR UPDATE", [locked.id])
        turns("scheduler-1")
        assert Task.objects.get(id=free.id).state == "processed"
        assert calls == [(2, 1), (2, 2)]
        cursor.execute("ROLLBACK")
    turns("scheduler-1")
    assert Task.objects.get(id=locked.id).state == "processed"
