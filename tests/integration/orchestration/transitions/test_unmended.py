"""A refused step waits to be mended: with another input, or its task is undone by itself (P11, P25)."""

from datetime import timedelta

import pytest

from orchestration import api, registry
from orchestration.database import clock
from orchestration.models import Alert, Event, Incident, Policy, Step, Task
from orchestration.models.alert import Severity
from orchestration.models.fields import DatabaseNow
from orchestration.testing.outcomes import done, rejected
from orchestration.transitions.claim import claim
from orchestration.transitions.holds import hold, release
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit
from tests.support.engine import new_task, reply_to, request_resubmit, request_undo, staff, sweep
from tests.support.operators import LEADER
from tests.support.unmended import DATA, PARTY, answer, refused

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _party(monkeypatch):
    monkeypatch.setitem(registry.workflows, "party", PARTY)
    Policy.objects.filter(agent="greeter").update(on_rejection="wait", resolve_within=60)
    staff()


def time_passes():
    Step.objects.filter(resolve_by__isnull=False).update(resolve_by=ago(1))
    sweep(LEADER)


def state(task):
    return Task.objects.get(id=task.id).state


@pytest.fixture
def party(run):
    """A task whose second step was refused, on a clock that the test moves."""
    run.script("greeter.greet", done(id="g1"), rejected("no"), done())
    task = run.submit("party", DATA, reference="7", reply_to="shop")
    run.go()
    return task


def test_it_waits_for_its_time_and_then_its_task_is_undone(run, party):
    run.wait(59)
    assert party.state == "error"
    assert Alert.objects.get(closed_at=None).severity == Severity.WARNING  # it settles itself
    run.wait(1)
    assert (party.state, party.undone) == ("undone", ["invite"])
    assert not Alert.objects.filter(closed_at=None).exists()
    assert "pay was not mended in time" in Event.objects.get(kind="undo").reason


def test_mended_in_time_it_goes_on_and_a_new_refusal_has_time_of_its_own():
    task, step = refused()
    old = step.resolve_by
    assert (
        resubmit(
            step.id, attempt=1, actor="ada", reason="other", request={"to": "Bob", "price": 500}
        )
        is None
    )
    assert Step.objects.get(id=step.id).resolve_by is None
    time_passes()
    assert state(task) == "processing"
    assert answer("rejected").payload["to"] == "Bob"
    assert Step.objects.get(id=step.id).resolve_by > old


def test_irreversible_step_leaves_the_undo_to_an_operator():
    task, step = refused()
    Step.objects.filter(task=task, name="invite").update(
        irreversible="they have read it", undo_action=""
    )
    time_passes()
    assert state(task) == "error"
    assert Step.objects.get(id=step.id).resolve_by is None
    assert sweep(LEADER)["to undo"] == 0
    assert Event.objects.filter(task=task, kind="no_undo").count() == 1


def test_who_is_quicker_counts():
    _, step = refused()
    Step.objects.filter(id=step.id).update(resolve_by=DatabaseNow())
    again = {"attempt": 1, "actor": "customer", "reason": "another name"}
    again["amendment"] = api.Amendment(request={"to": "Bob"})
    assert request_resubmit("party", "7", "pay", **again) is None
    assert request_resubmit("party", "7", "pay", **again) is api.Refusal.NOT_IN_ERROR
    assert sweep(LEADER)["to undo"] == 0
    answer("rejected")
    assert request_resubmit("party", "7", "pay", **again) is api.Refusal.OTHER_ATTEMPT
    assert request_resubmit("party", "7", "sing", **again) is api.Refusal.NO_SUCH_STEP
    assert request_undo("party", "7", actor="customer", reason="enough") is None
    assert request_undo("party", "7", actor="customer", reason="enough") is api.Refusal.NOT_UNDOABLE
    assert request_undo("party", "8", actor="customer", reason="enough") is api.Refusal.NO_SUCH_TASK


def test_application_may_change_the_input_of_later_steps():
    task = new_task("7", workflow="party", data=DATA)
    answer("rejected")
    assert (
        request_resubmit(
            "party", "7", "invite", attempt=1, actor="customer", reason="less",
            amendment=api.Amendment(request={"to": "Bob"}, data={"price": 300}),
        ) is None
    )  # fmt: skip
    assert Task.objects.get(id=task.id).data == {**DATA, "price": 300}
    assert Step.objects.get(task=task, name="pay").charges == {"amount": 300, "currency": "EUR"}
    assert answer().payload == {"to": "Bob"}
    assert answer().payload == {"to": "Ada", "price": 300}


@pytest.mark.parametrize("currency", ["EUR", "CHF"])
def test_value_at_risk_follows_a_changed_value(currency):
    new_task("7", workflow="party", data=DATA)
    answer("rejected")
    sweep(LEADER)
    incident = Incident.objects.get()
    assert incident.at_risk == {"EUR": 500}
    request_resubmit(
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
    request_resubmit(
        "party", "7", "pay", attempt=1, actor="customer", reason="later", amendment=later
    )
    assert not claim(["greeter"], "scheduler-1").requests.get("greeter")
    Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
    sweep(LEADER)
    assert answer().key.endswith(":pay:do:2")


def patient(**fields):
    """Return a task whose second step was refused, and is tried again as long as it is."""
    task, step = refused(code="not_yet", **fields)
    later = {"actor": "customer", "reason": "later"}
    later["amendment"] = api.Amendment(wait=600, patience=3600)
    assert request_resubmit("party", "7", "pay", attempt=1, **later) is None
    return task, step


def next_try():
    Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
    sweep(LEADER)


def test_rejection_within_its_correction_time_is_not_an_error():
    task, step = patient()
    for generation in (2, 3):
        next_try()
        answer("transient")
        sweep(LEADER)
        assert Step.objects.get(id=step.id).failure_count == 1
        next_try()
        assert answer("rejected", code="not_yet").key.endswith(f":pay:do:{generation}")
        assert state(task) == "processing"
        step.refresh_from_db()
        assert (step.process_state, step.resolve_by, step.failure_count) == ("pending", None, 0)
        assert 599 < (step.run_after - step.pending_since).total_seconds() < 661
    assert not Alert.objects.filter(closed_at=None).exists()
    next_try()
    assert answer().key.endswith(":pay:do:4")
    assert state(task) == "processed"


def test_what_is_waited_for_does_not_come_back_together():
    patient()
    waits = set()
    for _ in range(4):
        next_try()
        answer("rejected", code="not_yet")
        step = Step.objects.get(name="pay")
        waits.add(round((step.run_after - step.pending_since).total_seconds()))
    assert len(waits) > 1


@pytest.mark.parametrize("what", ["over", "another reason", "in doubt"])
def test_it_is_not_waited_for_without_end_nor_for_another_reason(what):
    task, step = patient()
    if what == "over":
        past = (step.ended_at - timedelta(seconds=1)).isoformat()
        Step.objects.filter(id=step.id).update(
            patience={"code": "not_yet", "wait": 600, "until": past}
        )
    next_try()
    if what == "in doubt":
        answer("unknown")
        sweep(LEADER)
        next_try()
    answer("rejected", code="never" if what == "another reason" else "not_yet")
    step.refresh_from_db()
    assert (step.process_state, state(task)) == ("error", "error")
    assert step.resolve_by is not None
    assert resubmit(step.id, attempt=step.attempt, actor="ada", reason="once more") is None
    assert Step.objects.get(id=step.id).patience is None


def test_task_within_its_correction_time_can_be_undone():
    task, _ = patient()
    next_try()
    answer("rejected", code="not_yet")
    assert request_undo("party", "7", actor="customer", reason="enough") is None
    answer()
    assert state(task) == "undone"


def test_progress_has_the_correction_deadline_and_whether_undo_works():
    _, step = refused()
    known = api.progress("party", "7")
    assert known.undoable
    assert [entry.resolve_by for entry in known.steps] == [None, step.resolve_by]
    Step.objects.filter(name="invite").update(irreversible="they have read it", undo_action="")
    assert not api.progress("party", "7").undoable


HOLDS = [
    {"task": True},
    {"workflow": "party", "step": "pay"},
    {"agent": "greeter"},
    {},
]


def held(scope, task):
    """Hold what a test is about; return the hold's id."""
    named = {**scope, "task": task.id} if "task" in scope else scope
    return hold(actor="olga", reason="to be looked into", **named).id


def free(hold_id):
    assert release(hold_id, actor="olga", reason="all right") is None


def ago(minutes):
    return DatabaseNow() - timedelta(minutes=minutes)


@pytest.mark.parametrize("scope", HOLDS)
def test_hold_stops_the_correction_time(run, party, scope):
    run.wait(20)
    hold_id = held(scope, Task.objects.get())
    run.wait(300)
    assert party.state == "error"
    free(hold_id)
    run.wait(39)  # of the minute, 40 seconds were left
    assert party.state == "error"
    run.finish()  # held ones are looked at rarely
    assert party.state == "undone"
    assert 40 <= run.clock.elapsed - 320 <= 120


def left(step):
    """Return the seconds that a step has left to be mended."""
    now = clock.database_now()
    return (Step.objects.get(id=step.id).resolve_by - now).total_seconds()


def test_held_rejections_are_rarely_queried():
    task, step = refused()
    Step.objects.filter(id=step.id).update(resolve_by=DatabaseNow())
    held({}, task)
    sweep(LEADER)
    assert left(step) > 50
    late = Step.objects.get(id=step.id).resolve_by
    sweep(LEADER)
    assert Step.objects.get(id=step.id).resolve_by == late


@pytest.mark.parametrize("scope", HOLDS[1:])
def test_unrelated_holds_do_not_stop_the_time(scope):
    task, _ = refused()
    other = {**scope, "step": "invite"} if "step" in scope else {"agent": "another_agent"}
    held(other, task)
    hold(actor="olga", reason="another one", task=new_task().id)
    time_passes()
    assert state(task) == "undoing"


@pytest.mark.parametrize("scope", HOLDS)
@pytest.mark.parametrize(
    ("column", "outcome"), [("on_rejection", "rejected"), ("past_threshold", "unknown")]
)
def test_hold_delays_an_undo_by_policy(column, outcome, scope):
    Policy.objects.filter(agent="greeter").update(**{column: "undo", "failure_threshold": 1})
    task = new_task("7", workflow="party", data=DATA)
    answer()
    (request,) = claim(["greeter"], "scheduler-1").requests["greeter"]
    hold_id = held(scope, task)
    record([reply_to(request, outcome)])
    sweep(LEADER)
    assert state(task) == "error"
    assert Alert.objects.get(closed_at=None).severity == Severity.WARNING
    free(hold_id)
    time_passes()
    assert state(task) == "undoing"
