"""A workflow whose only step has a child for each item, and tasks of it."""

from orchestration import registry, scheduler
from orchestration.models import Task
from orchestration.payloads.placeholders import field, item, key
from orchestration.states import LOCAL
from orchestration.transitions.replies import record
from orchestration.workers import scheduler_duties
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow
from tests.support.engine import new_task, reply_to, sent


def declare(monkeypatch, **fields):
    """Have the workflow "order", with children of the workflow "parcel", while a test runs."""
    pack = Step(
        name="pack", agent="greeter", action="greet", request={"to": field("to")},
        undo="take_back", undo_request={"key": key("pack")},
    )  # fmt: skip
    parcels = Step(
        name="parcels", workflow="parcel", each=field("to"), request={"to": item()}, **fields
    )
    for name, step in (("parcel", pack), ("order", parcels)):
        workflow = Workflow(name=name, steps=[step], result={"to": field("to")})
        monkeypatch.setitem(registry.workflows, name, workflow)


def begun(count, reference=None):
    """Return a task with that many children, and the requests of these."""
    order = new_task(reference, workflow="order", data={"to": list(range(count))})
    scheduler.run_once("scheduler-0", [], [LOCAL])
    assert Task.objects.filter(parent__task=order).count() == count
    return order, sent()


def ended(count, reference=None):
    """Return a processed task with that many children."""
    order, requests = begun(count, reference)
    record([reply_to(request) for request in requests])
    scheduler_duties.run()
    order.refresh_from_db()
    assert order.state == "processed"
    return order
