"""The input of a running task changes for the steps that have not used it: all of it, or nothing."""

from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import connection

from orchestration import api, registry, submission, task_requests
from orchestration.api import Step, Workflow, field, key, result
from orchestration.models import Event, StatusMessage, Submission, Task, TaskRequest
from orchestration.transitions.holds import hold
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to, run_to_end, step_of
from tests.support.violations import violations

pytestmark = pytest.mark.django_db
DATA = {"name": "Ada", "town": "Bath", "cents": 500}


@pytest.fixture(autouse=True)
def workflow(monkeypatch):
    """Declare a workflow of two steps that run side by side, and one after both."""
    steps = [
        Step(
            name="pay", agent="greeter", action="greet", request={"cents": field("cents")},
            undo="take_back", undo_request={"key": key("pay")},
            charges={"amount": field("cents"), "currency": "EUR"},
        ),
        Step(name="book", agent="greeter", action="greet", request={"town": field("town")}, undo=None),
        Step(
            name="mail", agent="greeter", action="greet", after=["pay", "book"], undo=None,
            request={"to": field("name"), "town": field("town"), "paid": result("pay", "id")},
        ),
    ]  # fmt: skip
    declared = Workflow(
        name="trip",
        steps=steps,
        personal=[field("name")],
        contact=field("name"),
        owner_application="shop",
        accepted=ACCEPTED.extend,
        permit=PERMITTED.append,
    )
    monkeypatch.setitem(registry.workflows, "trip", declared)
    ACCEPTED.clear()
    PERMITTED.clear()
    return declared


ACCEPTED, PERMITTED = [], []


def amend(reference="7", *, number=None, **data):
    """Ask for a change, and have it carried out; return the request."""
    number = number or uuid4()
    api.amend("trip", reference, data=data, actor="ada", reason="moved", id=number, note={"n": 1})
    task_requests.take(10)
    return TaskRequest.objects.get(request=number)


def trip():
    return new_task("7", workflow="trip", data=DATA)


def send(task, *names):
    """Claim all that is due, and answer for these steps only."""
    requests = {request.name: request for request in claimed()}
    record([reply_to(requests[name]) for name in names])
    return requests


def last_message():
    return StatusMessage.objects.filter(reply_to="shop").latest("id")


def test_steps_to_come_take_the_new_values():
    task = trip()
    request = amend(town="York")
    task.refresh_from_db()
    assert (task.data, request.refusal) == ({**DATA, "town": "York"}, "")
    assert step_of(task, "book").request == {"town": "York"}
    sent = send(task, "pay", "book")
    assert sent["book"].payload == {"town": "York"}
    (mail,) = claimed()
    assert mail.payload == {"to": "Ada", "town": "York", "paid": "g1"}


def test_step_that_was_sent_keeps_its_values_and_the_change_is_refused_with_its_name():
    task = trip()
    send(task, "pay")
    before = list(task.steps.order_by("id").values())
    request = amend(town="York", cents=700)
    task.refresh_from_db()
    assert (task.data, request.refusal) == (DATA, "TAKEN")
    assert list(task.steps.order_by("id").values()) == before
    message = last_message()
    assert (message.kind, message.detail["steps"]) == ("refused", ["book", "pay"])
    assert message.detail["request"] == str(request.request)
    assert not ACCEPTED
    assert not Event.objects.filter(kind="amended").exists()


def test_what_no_step_has_used_changes_while_others_are_sent():
    task = trip()
    send(task, "pay")
    assert amend(name="Eva").refusal == ""
    assert step_of(task, "mail").request["to"] == {"$from": ["", "name"]}
    task.refresh_from_db()
    assert (task.data["name"], task.contact) == ("Eva", "eva")


def test_application_gets_what_changed_in_the_same_transaction():
    trip()
    request = amend(town="York", name="Ada")
    (accepted,) = ACCEPTED
    assert (accepted.what, accepted.reference, accepted.note) == ("amend", "7", {"n": 1})
    assert accepted.data == {"town": "York", "name": "Ada"}
    message = last_message()
    assert (message.kind, message.detail) == (
        "amended", {"fields": ["town"], "request": str(request.request)},
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["amended", "reminder", "undoing_part"])
def test_audit_knows_what_the_last_message_of_a_task_may_be(kind):
    task = trip()
    send(task, "pay")
    amend(town="York")
    StatusMessage.objects.filter(id=last_message().id).update(kind=kind)
    assert not [breach for breach in violations() if breach.invariant == 11]
    StatusMessage.objects.filter(id=last_message().id).update(kind="completed")
    assert [breach for breach in violations() if breach.invariant == 11]


def test_history_has_no_personal_value():
    task = trip()
    amend(name="Eva", town="York")
    (event,) = Event.objects.filter(task=task, kind="amended")
    assert (event.actor, event.reason) == ("ada", "moved")
    assert event.detail == {
        "fields": ["name", "town"], "before": {"town": "Bath"}, "after": {"town": "York"},
    }  # fmt: skip


def test_charges_of_steps_to_come_change_with_the_input():
    task = trip()
    assert amend(cents=700).refusal == ""
    pay = step_of(task, "pay")
    assert (pay.request, pay.charges["amount"]) == ({"cents": 700}, 700)


def test_same_values_change_nothing_and_are_accepted():
    task = trip()
    send(task, "pay", "book")
    assert amend(**DATA).refusal == ""
    assert last_message().detail["fields"] == []


@pytest.mark.parametrize(
    ("data", "why"),
    [({"cents": None}, "INVALID"), ({"town": {}}, "")],
    ids=["charges", "any type"],
)
def test_values_are_those_that_a_submission_may_have(data, why, monkeypatch, workflow):
    value = {"amount": field("cents"), "currency": "EUR"}
    monkeypatch.setitem(registry.workflows, "trip", replace(workflow, value=value))
    task = trip()
    assert amend(**data).refusal == why
    task.refresh_from_db()
    assert task.data == (DATA if why else DATA | data)


def test_request_that_was_built_is_held_against_the_schema_of_its_action(monkeypatch):
    accepts = {"type": "object", "properties": {"town": {"type": "string"}}}
    monkeypatch.setattr(registry.agents["greeter"].greet, "accepts", accepts)
    task = trip()
    assert amend(town=7).refusal == "INVALID"
    assert step_of(task, "book").request == {"town": "Bath"}


def test_private_fields_are_not_of_the_task(monkeypatch, workflow):
    monkeypatch.setitem(registry.workflows, "trip", replace(workflow, private=["secret"]))
    trip()
    assert amend(secret="x").refusal == "INVALID"


def test_fields_that_one_person_must_not_change_alone_need_the_permission_of_the_workflow(
    monkeypatch, workflow
):
    task = trip()
    amend(cents=700)
    (asked,) = PERMITTED
    assert (asked.step, asked.data, asked.task_data) == ("", {"cents": 700}, DATA)

    def refuse(asked):
        raise api.Refused("not the price")

    monkeypatch.setitem(registry.workflows, "trip", replace(workflow, permit=refuse))
    assert amend(cents=900).refused_at is not None
    task.refresh_from_db()
    assert task.data["cents"] == 700
    assert amend(town="York").refused_at is None


def test_task_that_has_ended_or_is_undone_is_not_changed():
    task = trip()
    run_to_end(task)
    assert amend(name="Eva").refusal == "ENDED"
    other = new_task("8", workflow="trip", data=DATA)
    send(other)
    api.request_undo("trip", "8", actor="ada", reason="away", id=uuid4())
    task_requests.take(10)
    assert amend("8", name="Eva").refusal == "UNDOING"
    assert amend("9", name="Eva").refusal == "NO_SUCH_TASK"


def test_workflow_that_is_gone_has_no_templates_to_build_by(monkeypatch):
    trip()
    monkeypatch.delitem(registry.workflows, "trip")
    with pytest.raises(LookupError, match="only be undone"):
        api.amend("trip", "7", data={}, actor="ada", reason="moved", id=uuid4())


@pytest.mark.parametrize("amendment", ['{"data": [1]}', "[1]", "{}", "null"])
def test_request_posted_by_sql_without_an_object_is_invalid(amendment):
    trip()
    number = uuid4()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT orchestration_request(%s, 'trip', '7', 'amend', '', 0, %s, NULL, 'a', 'b', '')",
            [str(number), amendment],
        )
    task_requests.take(10)
    assert TaskRequest.objects.get(request=number).refusal == "INVALID"


def test_time_before_which_nothing_begins_is_taken_as_the_task_is_made(monkeypatch, workflow):
    monkeypatch.setitem(registry.workflows, "trip", replace(workflow, run_after=field("day")))
    new_task("7", workflow="trip", data={**DATA, "day": "2030-01-01T00:00:00+00:00"})
    assert amend(day="2031-01-01T00:00:00+00:00").refusal == "TAKEN"
    assert last_message().detail["steps"] == ["pay", "book"]
    assert amend(town="York").refusal == ""


def test_step_that_failed_by_a_value_is_resubmitted_with_another_one_instead():
    task = trip()
    requests = {request.name: request for request in claimed()}
    record([reply_to(requests["book"], "rejected"), reply_to(requests["pay"])])
    assert amend(town="York").refusal == "TAKEN"
    api.request_resubmit(
        "trip", "7", "book", attempt=1, actor="ada", reason="moved", id=uuid4(),
        amendment=api.Amendment(request={"town": "York"}, data={"town": "York"}),
    )  # fmt: skip
    task_requests.take(10)
    task.refresh_from_db()
    assert task.data["town"] == "York"


def test_repeated_request_is_carried_out_once():
    trip()
    number = uuid4()
    amend(town="York", number=number)
    amend(town="York", number=number)
    assert len(ACCEPTED) == Event.objects.filter(kind="amended").count() == 1


def test_held_task_and_its_steps_change_and_go_on_with_the_new_values():
    task = trip()
    hold(actor="ann", reason="check", task=task.id)
    assert claimed() == []
    assert step_of(task, "book").held_by is not None
    assert amend(town="York").refusal == ""
    assert step_of(task, "book").request == {"town": "York"}
    assert step_of(task, "book").held_by is not None


def test_posting_again_what_was_posted_is_still_the_same_task():
    trip()
    amend(town="York")
    api.submit("trip", reference="7", data=DATA)
    submission.take(10)
    assert not Submission.objects.exists()
    assert Task.objects.filter(workflow="trip").count() == 1


def test_handle_amends_its_task():
    trip()
    task = api.TaskHandle("trip", "7")
    task.amend(data={"town": "York"}, actor="ada", reason="moved", id=uuid4())
    task_requests.take(10)
    assert task.progress().data["town"] == "York"
