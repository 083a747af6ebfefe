"""Undo, on a real Postgres: in reverse order, only what was done or may have been, and never a lie."""

from dataclasses import replace

import pytest

from orchestration import registry
from orchestration.decisions.progress import Refusal
from orchestration.models import Alert, Event, IncidentHit, Policy, Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.payloads.placeholders import field, key, result
from orchestration.transitions.claim import claim
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import done_by_hand, resubmit
from orchestration.transitions.undo import undo
from orchestration.workflows.step import Step as StepDeclaration
from orchestration.workflows.workflow import Workflow
from tests.support.engine import new_task, reply_to, staff, sweep
from tests.support.operators import LEADER
from tests.support.violations import violations

pytestmark = pytest.mark.django_db

TRIP = Workflow(
    name="trip",
    steps=[
        StepDeclaration(
            name="flight", agent="greeter", action="greet", request={"to": field("name")},
            undo="greet", undo_request={"cancel": result("flight", "id"), "key": key("flight")},
        ),
        StepDeclaration(
            name="hotel", agent="greeter", action="greet", after=["flight"],
            undo="greet", undo_request={"cancel": key("hotel")},
        ),
        StepDeclaration(
            name="letter", agent="greeter", action="greet", after=["hotel"],
            irreversible="it is in the post",
        ),
    ],
)  # fmt: skip


@pytest.fixture(autouse=True)
def _trip(monkeypatch):
    monkeypatch.setitem(registry.workflows, "trip", TRIP)
    staff()
    yield
    assert violations() == []


def task():
    return new_task(workflow="trip")


def ask():
    """Claim what may run; return the one request."""
    requests = claim(["greeter"], "scheduler-1").requests.get("greeter", [])
    assert len(requests) <= 1
    return requests[0] if requests else None


def answer(outcome="done", **fields):
    request = ask()
    assert record([reply_to(request, outcome, **fields)]).accepted == 1
    return request


def states(trip):
    return {
        f"{step.direction} {step.name}": step.process_state
        for step in Step.objects.filter(task=trip)
    }


def state(trip):
    return Task.objects.get(id=trip.id).state


def again():
    """Let the supervisor decide, and every wait be over."""
    sweep(LEADER)
    Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
    sweep(LEADER)


def ask_undo(trip, **options):
    return undo(trip.id, actor="olga", reason="the customer cancelled", **options)


def test_done_steps_are_undone_in_reverse_order_under_own_keys():
    trip = task()
    answer()
    answer()
    assert ask_undo(trip) is None
    assert state(trip) == "undoing"
    first, second = answer(), answer()
    assert (first.name, second.name) == ("hotel", "flight")
    assert first.payload == {"cancel": f"{trip.id}:hotel:do:1"}
    assert second.payload == {"cancel": "g1", "key": f"{trip.id}:flight:do:1"}
    assert second.key == f"{trip.id}:flight:undo:1"
    assert state(trip) == "undone"
    assert states(trip)["do letter"] == "cancelled"


def test_unstarted_task_is_undone_at_once():
    trip = task()
    assert ask_undo(trip) is None
    assert state(trip) == "undone"
    assert ask() is None
    assert ask_undo(trip) is Refusal.NOT_UNDOABLE


def test_step_in_flight_is_awaited_and_then_undone():
    trip = task()
    request = ask()
    ask_undo(trip)
    assert ask() is None
    record([reply_to(request)])
    assert answer().key == f"{trip.id}:flight:undo:1"
    assert state(trip) == "undone"


def test_step_in_flight_without_effect_needs_no_undo():
    trip = task()
    request = ask()
    ask_undo(trip)
    record([reply_to(request, "rejected")])
    assert states(trip)["undo flight"] == "cancelled"
    assert state(trip) == "undone"


def test_step_in_doubt_is_settled_under_its_key_before_its_undo():
    trip = task()
    lost = answer("unknown")
    ask_undo(trip)
    again()
    settling = answer()
    assert (settling.key, settling.mode) == (lost.key, "settle")
    assert answer().payload["cancel"] == "g1"
    assert state(trip) == "undone"


def test_undo_by_key_blocks_a_late_call_that_had_no_effect():
    trip = task()
    answer()
    answer("unknown")  # the hotel, which is undone by key
    ask_undo(trip)
    again()
    assert answer("absent").mode == "settle"
    assert answer().payload == {"cancel": f"{trip.id}:hotel:do:1"}
    answer()
    assert state(trip) == "undone"


def test_a_transient_failure_leaves_nothing_to_undo():
    trip = task()
    answer("transient")
    ask_undo(trip)
    assert state(trip) == "undone"


def test_irreversible_step_stops_an_undo_before_it_starts_unless_forced():
    trip = task()
    for _ in range(3):
        answer()
    assert state(trip) == "processed"
    assert ask_undo(trip) is Refusal.IRREVERSIBLE
    assert state(trip) == "processed"
    assert Event.objects.get(task=trip).kind == "no_undo"
    assert ask_undo(trip, force=True) is None
    assert Event.objects.filter(task=trip, kind="undo").get().detail["standing"] == ["letter"]
    answer()
    answer()
    assert state(trip) == "undone"


def test_failed_undo_is_an_error_and_continues_when_resubmitted():
    trip = task()
    answer()
    ask_undo(trip)
    answer("rejected")
    assert state(trip) == "error"
    step = Step.objects.get(task=trip, direction="undo")
    assert "partly undone" in Alert.objects.get(closed_at=None).title
    assert resubmit(step.id, attempt=step.attempt, actor="olga", reason="mended") is None
    assert state(trip) == "undoing"
    assert answer().key.endswith(":undo:2")
    assert state(trip) == "undone"
    assert not Alert.objects.filter(closed_at=None).exists()


def test_a_failed_undo_can_be_done_by_hand():
    trip = task()
    answer()
    ask_undo(trip)
    answer("rejected")
    step = Step.objects.get(task=trip, direction="undo")
    assert done_by_hand(
        step.id, attempt=step.attempt, actor="olga", reason="by phone", result={"id": "x"}
    ) is None  # fmt: skip
    assert state(trip) == "undone"


def test_undo_after_a_step_was_done_by_hand_leaves_its_count_of_failures():
    Policy.objects.filter(agent="greeter").update(failure_threshold=3)
    trip = task()
    answer("transient")
    again()
    answer("rejected")
    flight = Step.objects.get(task=trip, name="flight")
    assert (flight.process_state, flight.failure_count) == ("error", 1)
    done_by_hand(flight.id, attempt=2, actor="olga", reason="by phone", result={"id": "g1"})
    ask_undo(trip)
    assert Step.objects.get(id=flight.id).failure_count == 1  # and the audit finds nothing


def test_late_reply_after_the_undo_changes_nothing():
    trip = task()
    request = answer()
    ask_undo(trip)
    answer()
    assert record([reply_to(request)]).accepted == 0
    assert state(trip) == "undone"


@pytest.mark.parametrize(
    ("column", "outcome"), [("on_rejection", "rejected"), ("past_threshold", "transient")]
)
def test_undo_is_requested_by_the_policy(column, outcome):
    Policy.objects.filter(agent="greeter").update(**{column: "undo", "failure_threshold": 1})
    trip = task()
    answer()
    answer(outcome)
    sweep(LEADER)
    assert state(trip) == "undoing"
    answer()
    assert state(trip) == "undone"
    assert not Alert.objects.filter(closed_at=None).exists()


def test_silence_past_the_threshold_is_a_doubt_settled_by_an_undo():
    Policy.objects.filter(agent="greeter").update(failure_threshold=1)
    trip = task()
    lost = ask()
    Step.objects.filter(task=trip, process_state="processing").update(complete_by=DatabaseNow())
    sweep(LEADER)
    assert state(trip) == "error"
    assert Step.objects.get(task=trip, name="flight").in_doubt
    ask_undo(trip)
    assert answer().key == lost.key
    answer()
    assert state(trip) == "undone"


@pytest.mark.parametrize("sibling", ["unknown", "transient", "expired"])
def test_failure_that_triggers_an_undo_is_counted_once(monkeypatch, sibling):
    side = StepDeclaration(
        name="car", agent="payment", action="greet", undo="greet", undo_request={"c": key("car")}
    )
    monkeypatch.setitem(registry.workflows, "trip", replace(TRIP, steps=[*TRIP.steps, side]))
    Policy.objects.filter(agent="greeter").update(failure_threshold=1, past_threshold="undo")
    Policy.objects.filter(agent="payment").update(failure_threshold=1)
    trip = task()
    requests = claim(["greeter", "payment"], "scheduler-1").requests
    flight, car = requests["greeter"][0], requests["payment"][0]
    record([reply_to(flight, "unknown")])
    if sibling == "expired":
        Step.objects.filter(id=car.step).update(complete_by=DatabaseNow())
    else:
        record([reply_to(car, sibling)])
    again()
    assert state(trip) == "undoing"
    assert {hit.step.name: hit.failures for hit in IncidentHit.objects.all()} == {
        "flight": 1,
        "car": 1,
    }
    settling = Step.objects.get(task=trip, name="flight", direction="do")
    assert (settling.process_state, settling.probing_outcome) == ("pending", True)
    again()
    again()
    assert sum(hit.failures for hit in IncidentHit.objects.all()) == 2
