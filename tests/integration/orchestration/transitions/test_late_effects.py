"""Effects that show too late: in replies that may not change their step any more."""

import json

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from orchestration.models import (
    Alert,
    Event,
    Operation,
    OperationItem,
    Policy,
    Step,
)
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import done_by_hand
from tests.support.engine import claimed, force, in_error, new_task, reply_to, step_of, sweep
from tests.support.operators import LEADER, browser, person
from tests.support.undo_workflows import (
    act,
    ask_undo,
    declare,
    expire,
    open_alerts,
    state,
    undo_step,
)
from tests.support.violations import violations

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _rooms(monkeypatch):
    declare(monkeypatch)


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
        assert open_alerts() == {f"late_effect/{task.id}/room/undo"}
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

    @pytest.mark.parametrize("workflow", ["by_result", "by_whole_result"])
    def test_without_a_result_an_undo_that_takes_it_is_for_a_person(self, workflow):
        Policy.objects.filter(agent="greeter").update(on_rejection="undo")
        task = new_task(workflow=workflow)
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        record([reply_to(request, "unknown")])
        assert (state(task), claimed()) == ("undone", [])
        assert open_alerts() == {f"late_effect/{task.id}/room/do/1"}
        record([reply_to(request, result={"id": "g1"})])
        assert "g1" in str(claimed()[0].payload)

    def test_after_a_resubmission_under_a_new_key_the_proof_is_an_alert(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        act(step_of(task))
        record([reply_to(request)])
        assert not step_of(task).in_doubt  # its new key is not
        assert open_alerts() == {f"late_effect/{task.id}/hello/do/1"}
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
        assert open_alerts() == {f"late_effect/{task.id}/room/do/1"}

    def test_what_was_done_by_hand_too_is_an_alert(self):
        task = new_task(workflow="by_key")
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        step = step_of(task, "room")
        done_by_hand(
            step.id, attempt=1, actor="olga", reason="by phone", result={"id": "phone"}
        )  # fmt: skip
        record([reply_to(request, result={"id": "r7"})])
        assert open_alerts() == {f"late_effect/{task.id}/room/do/1"}

    def test_what_was_found_out_by_hand_is_none(self):
        task = new_task(workflow="by_key")
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        done_by_hand(
            step_of(task, "room").id, attempt=1, actor="olga", reason="I looked", result={"id": "g1"}
        )  # fmt: skip
        record([reply_to(request)])
        assert open_alerts() == set()

    def test_another_result_of_what_is_done_is_an_alert(self):
        """Its service had forgotten the key: a second worker's call took effect once more."""
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, result={"id": "g1"})])
        record([reply_to(request, result={"id": "g1"})])
        assert open_alerts() == set()
        record([reply_to(request, result={"id": "g2"})])
        alert = Alert.objects.get(closed_at=None)
        assert alert.fingerprint == f"late_effect/{task.id}/hello/do/1"
        assert (alert.severity, "twice" in alert.title) == ("critical", True)
        assert step_of(task).result == {"id": "g1"}

    def test_a_repeat_that_says_so_is_none(self):
        """A service may add to its answer that it has given it before."""
        new_task()
        (request,) = claimed()
        made = {"id": "g1", "parts": [1, 2], "of": {"shop": "s"}}
        record([reply_to(request, result=made)])
        replayed = {**made, "of": {"shop": "s", "again": 1}, "replayed": True}
        record([reply_to(request, result=replayed)])
        assert open_alerts() == set()
        record([reply_to(request, result={**replayed, "parts": [1, 3]})])
        assert len(open_alerts()) == 1

    def test_another_result_that_shares_no_field_is_an_alert(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, result={"number": 7})])
        record([reply_to(request, result={"id": "g2"})])
        assert f"late_effect/{task.id}/hello/do/1" in open_alerts()

    def test_a_repeat_of_what_was_taken_back_with_its_result_is_none(self):
        task, request = self.given_up("by_whole_result")
        record([reply_to(request, result={"id": "r7"})])
        record([reply_to(sent) for sent in claimed()])
        assert (state(task), open_alerts()) == ("undone", set())
        record([reply_to(request, result={"id": "r7", "replayed": True})])
        assert open_alerts() == set()

    def test_of_a_step_whose_undo_by_key_was_sent_is_none(self):
        task = new_task(workflow="in_turn")
        record([reply_to(request) for request in claimed()])
        (meal,) = claimed()
        ask_undo(task)
        record([reply_to(meal, "absent")])
        record([reply_to(meal)])  # by now its undo by key is pending
        assert open_alerts() == set()


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
        ann = browser(person("ann", "operate", "acknowledge", "see_personal"))
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


class TestSeveralEffectsOfOneStep:
    """Under two keys: each is undone, or named by an alert of its own."""

    def undone(self, workflow):
        """Return an undone task, and its requests under two keys, both rejected."""
        task = new_task(workflow=workflow)
        (first,) = claimed()
        record([reply_to(first, "rejected")])
        act(step_of(task, "room"))
        (second,) = claimed()
        ask_undo(task)
        record([reply_to(second, "rejected")])
        assert state(task) == "undone"
        return task, first, second

    @pytest.mark.parametrize("turn", [1, -1])
    def test_the_first_to_show_is_undone_and_the_other_stays_a_persons(self, turn):
        task, *requests = self.undone("by_key")
        shown, other = requests[::turn]
        record([reply_to(shown)])
        (sent,) = claimed()
        assert sent.payload == {"key": shown.key}
        record([reply_to(other)])
        record([reply_to(sent)])
        assert state(task) == "undone"
        (alert,) = Alert.objects.filter(closed_at=None)
        assert (alert.severity, other.key in alert.detail) == ("critical", True)

    def test_an_undo_by_result_takes_back_one_result(self):
        _, first, second = self.undone("by_result")
        record([reply_to(first, result={"id": "r1"})])
        (sent,) = claimed()
        record([reply_to(second, result={"id": "r2"})])
        record([reply_to(first, result={"id": "r1"})])  # once more: that is counted
        record([reply_to(sent)])
        (alert,) = Alert.objects.filter(closed_at=None)
        assert second.key in alert.detail


class TestWhatElseShowsLate:
    def test_a_refusal_after_a_time_out_leaves_a_doubt_too(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        record([reply_to(request, "rejected", in_doubt=True)])
        act(step_of(task))
        assert claimed()[0].key == request.key

    @pytest.mark.parametrize("late", ["unknown", "rejected"])
    def test_settled_doubt_does_not_come_back(self, late):
        """The refusal under the key came after the silence that the late reply reports."""
        task = new_task()
        (first,) = claimed()
        expire(task)
        (second,) = claimed()
        assert second.key == first.key
        record([reply_to(second, "rejected", in_doubt=False)])
        record([reply_to(first, late, in_doubt=True)])
        step = step_of(task)
        assert (step.process_state, step.in_doubt) == ("error", False)
        assert act(step, request={"to": "Bob"}) is None
        assert claimed()[0].generation == 2

    def test_proof_after_a_refusal_that_settled_it_keeps_the_key(self):
        task = new_task()
        (first,) = claimed()
        expire(task)
        record([reply_to(second, "rejected", in_doubt=False) for second in claimed()])
        record([reply_to(first, "done")])
        assert step_of(task).in_doubt

    def absent_after(self, task, *late):
        """Have an attempt expire, and the next one learn that nothing is known; then come replies."""
        (first,) = claimed()
        expire(task)
        Step.objects.filter(task=task, process_state="pending").update(probing_outcome=True)
        (second,) = claimed()
        record([reply_to(second, "absent")])
        record([reply_to(first, outcome) for outcome in late])

    def test_proof_after_an_absent_keeps_the_key(self):
        task = new_task()
        self.absent_after(task, "done")
        expire(task)
        assert claimed()[0].generation == 1

    def test_proof_after_an_absent_is_settled_by_an_undo(self):
        task = new_task(workflow="by_key")
        self.absent_after(task, "done")
        ask_undo(task)
        expire(task)
        (sent,) = claimed()
        assert (sent.mode, sent.generation) == ("settle", 1)

    def test_proof_before_the_absent_of_an_attempt_that_is_out_keeps_the_key(self):
        task = new_task()
        (first,) = claimed()
        expire(task)
        Step.objects.filter(task=task, process_state="pending").update(probing_outcome=True)
        (second,) = claimed()
        record([reply_to(first, "done")])  # it had asked before
        record([reply_to(second, "absent")])
        expire(task)
        (again,) = claimed()
        assert (again.key, again.in_doubt) == (first.key, True)

    def test_settled_doubt_is_not_reported_again(self):
        task = new_task()
        (first,) = claimed()
        expire(task)
        Step.objects.filter(task=task, process_state="pending").update(probing_outcome=True)
        record([reply_to(request, "absent") for request in claimed()])
        expire(task)
        assert claimed()[0].generation == 2
        record([reply_to(first, "unknown")])
        assert open_alerts() == set()

    def test_an_undo_that_a_person_found_needless_does_not_stand_for_it(self):
        task = new_task(workflow="in_turn")
        record([reply_to(request) for request in claimed()])
        (meal,) = claimed()
        ask_undo(task)
        record([reply_to(meal, "absent")])
        record([reply_to(request, "rejected") for request in claimed()])
        done_by_hand(
            undo_step(task, "meal").id, attempt=1, actor="olga", reason="nothing is known",
            result={"effect": "none"},
        )  # fmt: skip
        record([reply_to(meal)])
        assert open_alerts() == {f"late_effect/{task.id}/meal/do/1"}

    def test_a_step_that_waits_again_after_a_failover(self):
        task = new_task(workflow="in_turn")
        record([reply_to(request) for request in claimed()])
        (meal,) = claimed()
        force(
            "UPDATE orchestration_step SET process_state = 'waiting', attempt = 0, locked_by = NULL,"
            " complete_by = NULL WHERE id = %(id)s", {"id": meal.step},
        )  # fmt: skip
        record([reply_to(meal)])
        assert open_alerts() == {f"late_effect/{task.id}/meal/do/1"}


class TestWhatFollowsFromAnEffectThatShowsLate:
    def turned(self):
        """Return a task that was undone after a rejection, and the request."""
        Policy.objects.filter(agent="greeter").update(on_rejection="undo")
        task = new_task(workflow="by_key")
        (request,) = claimed()
        record([reply_to(request, "rejected")])
        return task, request

    def test_its_undo_is_claimed_in_the_same_turn(self):
        _, request = self.turned()
        assert record([reply_to(request)]).agents == {"greeter"}

    def test_audit_has_no_findings(self):
        task, request = self.turned()
        operation = Operation.objects.create(act="undo", actor="olga", reason="x", selection={})
        OperationItem.objects.create(
            operation=operation, task=task, state="fixed", seen="processing", ended_at=DatabaseNow()
        )
        record([reply_to(request)])
        known = {1, 2, 3, 5, 6, 7, 8, 9, 10, 12}
        assert not [
            breach
            for breach in violations()
            if breach.invariant in known or "calls it" in breach.detail
        ]
        record([reply_to(sent) for sent in claimed()])
        assert state(task) == "undone"
        assert not [breach for breach in violations() if breach.invariant in known]

    def test_other_steps_of_its_task_in_the_same_batch_keep_their_states(self):
        task = new_task(workflow="side_by_side")
        requests = {request.name: request for request in claimed()}
        record([reply_to(requests["meal"], "rejected"), reply_to(requests["room"])])
        ask_undo(task)
        (take,) = claimed()
        record([reply_to(take, "rejected"), reply_to(requests["meal"])])
        assert state(task) == "error"
