"""What is known of an effect, on a real Postgres: it is never believed undone without proof."""

import json

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from orchestration import registry
from orchestration.models import Alert, Event, Policy, Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.progression import Refusal
from orchestration.queries.preview import undo_preview
from orchestration.sweep import sweep
from orchestration.transitions import claim, done_by_hand, record, resubmit, undo
from orchestration.workflow import Step as StepDeclaration
from orchestration.workflow import Workflow, key, result
from tests.engine import claimed, in_error, new_task, reply_to, staff, step_of
from tests.operators import LEADER, browser, person

pytestmark = pytest.mark.django_db


def declared(name, *, after=(), undo_request=None, irreversible=""):
    return StepDeclaration(
        name=name, agent="greeter", action="greet", after=after, irreversible=irreversible,
        undo=None if irreversible else "take_back",
        undo_request={"key": key(name)} if undo_request is None else undo_request,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _workflows(monkeypatch):
    shapes = {
        "by_key": [declared("room")],
        "by_result": [declared("room", undo_request={"id": result("room", "id")})],
        "forever": [declared("room", irreversible="it is in the post")],
        "side_by_side": [declared("room"), declared("meal")],
        "in_turn": [declared("room"), declared("meal", after=["room"])],
    }
    for name, steps in shapes.items():
        monkeypatch.setitem(registry.workflows, name, Workflow(name=name, steps=steps))
    staff()


def act(step, **options):
    return resubmit(step.id, attempt=step.attempt, actor="olga", reason="mended", **options)


def ask_undo(task, **options):
    return undo(task.id, actor="olga", reason="the customer cancelled", **options)


def state(task):
    return Task.objects.get(id=task.id).state


def undo_step(task, name="room"):
    return Step.objects.filter(task=task, direction="undo", name=name).first()


def open_alerts():
    return set(Alert.objects.filter(closed_at=None).values_list("fingerprint", flat=True))


def expire(task):
    Step.objects.filter(task=task, process_state="processing").update(complete_by=DatabaseNow())
    sweep(LEADER)
    Step.objects.filter(run_after__isnull=False).update(run_after=None)


class TestRejections:
    def test_by_itself_a_rejection_leaves_no_doubt(self):
        assert not in_error().in_doubt

    def test_one_after_a_time_out_leaves_the_doubt_and_a_resubmission_keeps_the_key(self):
        task = new_task()
        (first,) = claimed()
        record([reply_to(first, "unknown")])
        expire(task)
        step = in_error(task)
        assert (step.in_doubt, step.outcome) == (True, "rejected")
        assert act(step) is None
        (again,) = claimed()
        assert (again.key, again.in_doubt) == (first.key, True)

    def test_one_inside_the_attempt_that_timed_out_first_leaves_it_in_doubt(self):
        step = in_error(in_doubt=True)
        assert step.in_doubt
        act(step)
        assert claimed()[0].generation == 1

    def test_one_that_the_service_keeps_under_the_key_ends_the_doubt(self):
        task = new_task()
        record([reply_to(request, "unknown") for request in claimed()])
        expire(task)
        step = in_error(task, in_doubt=False)
        assert not step.in_doubt
        act(step)
        assert claimed()[0].generation == 2

    def test_in_doubt_its_input_cannot_be_changed(self):
        step = in_error(in_doubt=True)
        assert act(step, request={"to": "Bob"}) is Refusal.IN_DOUBT
        assert act(step, request={"to": "Bob"}, nothing_done=True) is None

    def test_in_doubt_while_its_task_is_undone_it_is_for_a_person(self):
        task = new_task(workflow="by_key")
        (request,) = claimed()
        ask_undo(task)
        record([reply_to(request, "rejected", in_doubt=True)])
        assert state(task) == "error"
        assert step_of(task, "room").in_doubt

    def test_an_undo_for_one_in_doubt_settles_it_first(self):
        Policy.objects.filter(agent="greeter").update(on_rejection="undo")
        task = new_task(workflow="by_key")
        (first,) = claimed()
        record([reply_to(first, "rejected", in_doubt=True)])
        assert state(task) == "undoing"
        expire(task)
        (settling,) = claimed()
        assert (settling.mode, settling.key) == ("settle", first.key)
        record([reply_to(settling)])
        assert claimed()[0].payload == {"key": first.key}

    def test_two_of_one_task_in_one_batch_are_one_undo_and_leave_no_alert(self):
        Policy.objects.filter(agent="greeter").update(on_rejection="undo")
        task = new_task(workflow="side_by_side")
        record([reply_to(request, "rejected") for request in claimed()])
        assert state(task) == "undone"
        assert open_alerts() == set()
        assert not Event.objects.filter(task=task, kind="error").exists()


class TestDeliveredTwice:
    """One request, two agents: the first reply to come is recorded, the other one is proof."""

    def test_a_rejection_first_then_the_proof_a_resubmission_keeps_the_key(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        assert record([reply_to(request)]).accepted == 0
        step = step_of(task)
        assert (step.process_state, step.in_doubt) == ("error", True)
        act(step)
        assert claimed()[0].key == request.key

    def test_in_one_batch_it_is_the_same(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, "rejected"), reply_to(request)])
        act(step_of(task))
        assert claimed()[0].key == request.key

    def test_a_rejection_that_had_it_undone_then_the_proof_sends_the_undo(self):
        Policy.objects.filter(agent="greeter").update(on_rejection="undo")
        task = new_task(workflow="by_key")
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        assert state(task) == "undone"
        record([reply_to(request)])
        assert state(task) == "undoing"
        assert open_alerts() == {f"late_effect/{task.id}/room"}
        (sent,) = claimed()
        assert (sent.payload, sent.key) == ({"key": request.key}, f"{task.id}:room:undo:1")
        record([reply_to(sent)])
        assert state(task) == "undone"
        assert open_alerts() == set()

    def test_that_it_may_have_been_done_sends_the_undo_by_key_too(self):
        Policy.objects.filter(agent="greeter").update(on_rejection="undo")
        new_task(workflow="by_key")
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        record([reply_to(request, "unknown")])
        assert claimed()[0].payload == {"key": request.key}

    def test_after_a_resubmission_under_a_new_key_the_proof_is_an_alert(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        act(step_of(task))
        record([reply_to(request)])
        assert not step_of(task).in_doubt  # its new key is not
        assert open_alerts() == {f"late_effect/{task.id}/hello"}
        assert request.key in Alert.objects.get(closed_at=None).detail


class TestProofThatComesLate:
    def given_up(self, workflow):
        """Return a task that was undone on a person's word that nothing was done, and the request."""
        task = new_task(workflow=workflow)
        (request,) = claimed()
        ask_undo(task)
        record([reply_to(request, "unknown", code="key_forgotten")])
        sweep(LEADER)
        assert act(step_of(task, "room"), nothing_done=True) is None
        assert state(task) == "undone"
        return task, request

    def test_the_undo_by_key_that_was_not_needed_is_sent(self):
        task, request = self.given_up("by_key")
        assert undo_step(task).process_state == "cancelled"
        record([reply_to(request)])
        assert claimed()[0].payload == {"key": request.key}
        assert Event.objects.filter(task=task, kind="late").count() == 1

    def test_an_undo_by_result_takes_the_result_of_the_proof(self):
        _, request = self.given_up("by_result")
        record([reply_to(request, result={"id": "r7"})])
        assert claimed()[0].payload == {"id": "r7"}

    def test_without_a_result_a_person_has_to_find_out(self):
        task, request = self.given_up("by_result")
        record([reply_to(request, "unknown")])
        assert state(task) == "undone"
        alert = Alert.objects.get(closed_at=None)
        assert (alert.severity, "may have had" in alert.title) == ("critical", True)

    def test_twice_is_one_undo(self):
        task, request = self.given_up("by_key")
        record([reply_to(request), reply_to(request)])
        record([reply_to(request)])
        assert Step.objects.filter(task=task, direction="undo").count() == 1
        assert len(claimed()) == 1

    def test_what_cannot_be_undone_is_an_alert_for_a_person(self):
        task = new_task(workflow="forever")
        (request,) = claimed()
        Step.objects.filter(task=task).update(in_doubt=True)
        ask_undo(task, force=True)
        record([reply_to(request, "absent")])
        assert state(task) == "undone"
        record([reply_to(request)])
        assert state(task) == "undone"
        assert open_alerts() == {f"late_effect/{task.id}/room"}

    def test_what_was_done_by_hand_too_is_an_alert(self):
        task = new_task(workflow="by_key")
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        step = step_of(task, "room")
        done_by_hand(
            step.id, attempt=1, actor="olga", reason="by phone", result={"id": "phone"}
        )  # fmt: skip
        record([reply_to(request, result={"id": "r7"})])
        assert open_alerts() == {f"late_effect/{task.id}/room"}

    def test_what_was_found_out_by_hand_is_none(self):
        task = new_task(workflow="by_key")
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        done_by_hand(
            step_of(task, "room").id, attempt=1, actor="olga", reason="I looked", result={"id": "g1"}
        )  # fmt: skip
        record([reply_to(request)])
        assert open_alerts() == set()

    def test_of_a_step_whose_undo_by_key_was_sent_is_none(self):
        task = new_task(workflow="in_turn")
        record([reply_to(request) for request in claimed()])
        (meal,) = claimed()
        ask_undo(task)
        record([reply_to(meal, "absent")])
        record([reply_to(meal)])  # by now its undo by key is pending
        assert open_alerts() == set()


class TestTheFence:
    def test_a_reply_of_another_timeline_is_refused(self):
        task = new_task()
        (request,) = claimed()
        for fields in ({"generation": 2}, {"dispatch": request.dispatch + 1}):
            recorded = record([reply_to(request, "rejected", **fields)])
            assert [why for _, why in recorded.refused] == [Refusal.OTHER_DISPATCH]
        assert step_of(task).process_state == "processing"
        assert record([reply_to(request)]).accepted == 1

    def test_the_effect_of_a_lost_generation_is_an_alert(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, generation=2, dispatch=request.dispatch + 1)])
        assert open_alerts() == {f"late_effect/{task.id}/hello"}
        assert f"{task.id}:hello:do:2" in Alert.objects.get().detail

    def test_the_effect_of_a_lost_dispatch_is_a_doubt(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, dispatch=request.dispatch + 1)])
        assert step_of(task).in_doubt

    def test_an_agent_that_reports_neither_is_heard(self):
        new_task()
        (request,) = claimed()
        assert record([reply_to(request, generation=0, dispatch=0)]).accepted == 1


class TestDoneByHand:
    def undone_by_hand(self, workflow):
        task = new_task(workflow=workflow)
        record([reply_to(request, "rejected") for request in claimed()])
        done_by_hand(
            step_of(task, "room").id, attempt=1, actor="olga", reason="by phone", result={"id": "r1"}
        )  # fmt: skip
        return task

    def test_an_undo_by_key_is_a_persons(self):
        task = self.undone_by_hand("by_key")
        (call,) = undo_preview(task.id)["calls"]
        assert call["by_hand"]
        ask_undo(task)
        undone = undo_step(task)
        assert (undone.process_state, undone.error_code) == ("error", "done_by_hand")
        assert claim(["greeter"], "scheduler-1").requests == {}
        assert act(undone) is Refusal.NOT_BUILDABLE
        done_by_hand(
            undone.id, attempt=0, actor="olga", reason="by phone", result={"effect": "none"}
        )  # fmt: skip
        assert state(task) == "undone"
        assert open_alerts() == set()

    def test_an_undo_that_takes_the_result_which_was_typed_in_is_sent(self):
        task = self.undone_by_hand("by_result")
        assert not undo_preview(task.id)["calls"][0]["by_hand"]
        ask_undo(task)
        assert claimed()[0].payload == {"id": "r1"}


class TestClosingTheAlertOfALateEffect:
    """Nothing else can know that a person has settled it."""

    @pytest.fixture
    def alert(self):
        task = new_task(workflow="forever")
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        done_by_hand(
            step_of(task, "room").id, attempt=1, actor="olga", reason="by phone", result={"id": "x"}
        )  # fmt: skip
        record([reply_to(request)])
        return Alert.objects.get(closed_at=None)

    def test_on_the_page_that_the_alert_leads_to(self, alert):
        ann = browser(person("ann", "operate", "acknowledge"))
        task = alert.fingerprint.split("/")[1]
        page = ann.get(reverse("ops:task", args=[task])).text
        address = reverse("ops:settle", args=[alert.id])
        assert address in page
        assert reverse("ops:task", args=[task]) in ann.get(reverse("ops:overview")).text
        assert alert.title in ann.get(address).text
        assert ann.post(address, {"reason": ""}).status_code == 422
        assert ann.post(address, {"reason": "it was sent back"}).status_code == 303
        assert open_alerts() == set()
        event = Event.objects.get(kind="closed")
        assert (event.actor, event.reason, str(event.task_id)) == ("ann", "it was sent back", task)
        late = ann.post(address, {"reason": "again"})
        assert late.status_code == 409
        assert "it was sent back" in late.text

    def test_from_a_shell(self, alert, capsys):
        call_command("tasks", "alerts")
        assert json.loads(capsys.readouterr().out)[0]["id"] == alert.id
        call_command("tasks", "settle", str(alert.id), "--reason", "it was sent back")
        assert open_alerts() == set()
        with pytest.raises(CommandError, match="not the open alert of a late effect"):
            call_command("tasks", "settle", str(alert.id), "--reason", "again")

    def test_other_alerts_close_by_themselves_only(self):
        step = in_error()
        ann = browser(person("ann", "operate", "acknowledge"))
        assert (
            ann.post(reverse("ops:settle", args=[step.alert_id]), {"reason": "x"}).status_code
            == 404
        )
        assert Alert.objects.get(closed_at=None).id == step.alert_id
