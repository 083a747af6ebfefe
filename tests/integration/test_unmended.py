"""A refused step waits to be mended: with another input, or its task is undone by itself (P11, P25)."""

import pytest

from orchestration import api, registry
from orchestration.leader import Leadership
from orchestration.models import Alert, Event, Incident, Policy, Step, Task
from orchestration.models.alert import Severity
from orchestration.models.fields import DatabaseNow
from orchestration.sweep import sweep
from orchestration.transitions import claim, record, resubmit
from orchestration.workflow import Step as Declared
from orchestration.workflow import Workflow, field, result
from tests.engine import new_task, reply_to, staff

pytestmark = pytest.mark.django_db
LEADER = Leadership(holder="supervisor-1", epoch=1)
PARTY = Workflow(
    name="party",
    value={"amount": field("price"), "currency": field("currency")},
    steps=[
        Declared(
            name="invite", agent="greeter", action="greet", request={"to": field("name")},
            undo="greet", undo_request={"to": result("invite", "id")},
        ),
        Declared(
            name="pay", agent="greeter", action="greet", after=["invite"],
            request={"to": field("name"), "price": field("price")}, undo=None,
            charges={"amount": field("price"), "currency": field("currency")},
        ),
    ],
)  # fmt: skip
DATA = {"name": "Ada", "price": 500, "currency": "EUR"}


@pytest.fixture(autouse=True)
def _party(monkeypatch):
    monkeypatch.setitem(registry.workflows, "party", PARTY)
    Policy.objects.filter(agent="greeter").update(on_rejection="wait", mend_within=60)
    staff()


def answer(outcome="done", **fields):
    (request,) = claim(["greeter"], "scheduler-1").requests["greeter"]
    record([reply_to(request, outcome, **fields)])
    return request


def refused(**fields):
    """Return a task whose second step was refused, and that step."""
    task = new_task("7", workflow="party", data=DATA, reply_to="shop")
    answer()
    answer("rejected", **fields)
    return task, Step.objects.get(task=task, name="pay")


def time_passes():
    Step.objects.filter(mend_by__isnull=False).update(mend_by=DatabaseNow())
    sweep(LEADER)


def state(task):
    return Task.objects.get(id=task.id).state


def test_it_waits_for_its_time_and_then_its_task_is_undone():
    task, _ = refused()
    assert sweep(LEADER).undone == 0
    assert state(task) == "error"
    assert Alert.objects.get(closed_at=None).severity == Severity.WARNING  # it settles itself
    time_passes()
    assert state(task) == "undoing"
    answer()
    assert state(task) == "undone"
    assert not Alert.objects.filter(closed_at=None).exists()
    assert "nobody mended pay in time" in Event.objects.get(task=task, kind="undo").reason


def test_mended_in_time_it_goes_on_and_a_new_refusal_has_time_of_its_own():
    task, step = refused()
    old = step.mend_by
    assert (
        resubmit(
            step.id, attempt=1, actor="ada", reason="other", request={"to": "Bob", "price": 500}
        )
        is None
    )
    assert Step.objects.get(id=step.id).mend_by is None
    time_passes()
    assert state(task) == "processing"
    assert answer("rejected").payload["to"] == "Bob"
    assert Step.objects.get(id=step.id).mend_by > old


def test_something_irreversible_leaves_it_to_an_operator():
    task, step = refused()
    Step.objects.filter(task=task, name="invite").update(
        irreversible="they are told", undo_action=""
    )
    time_passes()
    assert state(task) == "error"
    assert Step.objects.get(id=step.id).mend_by is None
    assert sweep(LEADER).undone == 0
    assert Event.objects.filter(task=task, kind="no_undo").count() == 1


def test_who_is_quicker_counts():
    _, step = refused()
    Step.objects.filter(id=step.id).update(mend_by=DatabaseNow())
    again = {"attempt": 1, "actor": "customer", "reason": "another name"}
    again["amendment"] = api.Amendment(request={"to": "Bob"})
    assert api.resubmit("party", "7", "pay", **again) is None
    assert api.resubmit("party", "7", "pay", **again) is api.Refusal.NOT_IN_ERROR
    assert sweep(LEADER).undone == 0
    answer("rejected")
    assert api.resubmit("party", "7", "pay", **again) is api.Refusal.OTHER_ATTEMPT
    assert api.resubmit("party", "8", "pay", **again) is api.Refusal.NO_SUCH_STEP
    assert api.undo("party", "7", actor="customer", reason="enough") is None
    assert api.undo("party", "7", actor="customer", reason="enough") is api.Refusal.NOT_UNDOABLE
    assert api.undo("party", "8", actor="customer", reason="enough") is api.Refusal.NO_SUCH_TASK


def test_an_application_may_change_the_input_for_the_steps_to_come():
    task = new_task("7", workflow="party", data=DATA)
    answer("rejected")
    assert (
        api.resubmit(
            "party", "7", "invite", attempt=1, actor="customer", reason="less",
            amendment=api.Amendment(request={"to": "Bob"}, data={"price": 300}),
        ) is None
    )  # fmt: skip
    assert Task.objects.get(id=task.id).data == {**DATA, "price": 300}
    assert Step.objects.get(task=task, name="pay").charges == {"amount": 300, "currency": "EUR"}
    assert answer().payload == {"to": "Bob"}
    assert answer().payload == {"to": "Ada", "price": 300}


@pytest.mark.parametrize("currency", ["EUR", "CHF"])
def test_what_is_at_risk_follows_a_changed_value(currency):
    new_task("7", workflow="party", data=DATA)
    answer("rejected")
    sweep(LEADER)
    incident = Incident.objects.get()
    assert incident.at_risk == {"EUR": 500}
    api.resubmit(
        "party", "7", "invite", attempt=1, actor="customer", reason="less",
        amendment=api.Amendment(data={"price": 300, "currency": currency}),
    )  # fmt: skip
    sweep(LEADER)
    incident.refresh_from_db()
    assert incident.at_risk == {}
    answer("rejected")
    sweep(LEADER)
    incident.refresh_from_db()
    assert incident.at_risk == {currency: 300}


def test_it_can_be_tried_again_later():
    refused()
    later = api.Amendment(wait=600)
    api.resubmit("party", "7", "pay", attempt=1, actor="customer", reason="later", amendment=later)
    assert not claim(["greeter"], "scheduler-1").requests.get("greeter")
    Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
    sweep(LEADER)
    assert answer().key.endswith(":pay:do:2")


def test_progress_says_until_when_and_whether_it_can_be_undone():
    _, step = refused()
    found = api.progress("party", "7")
    assert found.undoable
    assert [one.mend_by for one in found.steps] == [None, step.mend_by]
    Step.objects.filter(name="invite").update(irreversible="they are told", undo_action="")
    assert not api.progress("party", "7").undoable
