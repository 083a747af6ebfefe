"""What is known of an effect, on a real Postgres: it is never believed undone without proof."""

import pytest

from orchestration.decisions.progress import Refusal
from orchestration.models import Alert, Event, Policy, StatusMessage
from orchestration.operations.undo_preview import undo_preview
from orchestration.transitions.claim import claim
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import done_by_hand
from tests.support.engine import claimed, in_error, new_task, reply_to, step_of
from tests.support.undo_workflows import (
    act,
    ask_undo,
    declare,
    expire,
    open_alerts,
    state,
    undo_step,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _rooms(monkeypatch):
    declare(monkeypatch)


class TestRejections:
    def test_by_itself_a_rejection_leaves_no_doubt(self):
        assert not in_error().in_doubt

    def test_rejection_after_a_timeout_leaves_the_doubt_and_keeps_the_key(self):
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


class TestTheFence:
    def test_reply_of_another_timeline_is_refused(self):
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
        assert open_alerts() == {f"late_effect/{task.id}/hello/do/2"}
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


def test_step_in_doubt_is_not_left_to_the_customer():
    new_task(reply_to="shop")
    record([reply_to(request, "rejected", in_doubt=True) for request in claimed()])
    assert StatusMessage.objects.latest("number").kind == "failed"
