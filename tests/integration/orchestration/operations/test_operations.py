"""Bulk operations: what is frozen, at which rate it is sent, what became of it, and the true end."""

from importlib import import_module

import pytest
from django.db import IntegrityError, transaction

from orchestration.console.queries.operations import last_action_on_operation
from orchestration.decisions.progress import Refusal
from orchestration.models import (
    Alert,
    Event,
    Hold,
    Incident,
    Lease,
    Operation,
    OperationItem,
    Step,
    SupervisorPolicy,
    Task,
)
from orchestration.models.fields import DatabaseNow
from orchestration.models.operation import ITEM_MOVES, OPERATION_MOVES
from orchestration.operations import controls, items, runner
from orchestration.operations.lifecycle import approve, confirm, draft, preview
from orchestration.operations.summary import sentence
from orchestration.transitions.holds import hold
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import done_by_hand, resubmit
from orchestration.transitions.undo import undo
from tests.support.engine import (
    claimed,
    in_error,
    irreversible,
    new_task,
    reply_to,
    run_to_end,
    staff,
    sweep,
)
from tests.support.operations import (  # fmt: skip
    advance,
    answer,
    begin,
    chosen,
    confirmed,
    drafted,
    failed,
    lead,
    pass_time,
    running,
    states,
    who,
)
from tests.support.operators import person

pytestmark = pytest.mark.django_db


def ended(operation):
    operation.refresh_from_db()
    return operation.state, sentence(operation.act, operation.counts)


class TestTheStory:
    def test_two_causes_one_is_corrected(self):
        failed(400, "no_route", message="no route to depot {n} for order {n}")
        failed(100, "bad_address", message="address {n} is nowhere")
        assert sorted(Incident.objects.values_list("code", flat=True)) == [
            "bad_address", "no_route",
        ]  # fmt: skip
        operation = running(Task.objects.all())
        assert advance(operation).sent == 500
        broken = set(Step.objects.filter(error_code="bad_address").values_list("id", flat=True))

        def how(request):
            if request.step not in broken:
                return reply_to(request)
            message = f"address {request.step} is nowhere"
            return reply_to(request, "rejected", code="bad_address", message=message)

        answer(how)
        advance(operation)
        assert ended(operation) == (
            "ended", "500 resubmitted: 400 fixed, 100 failed again (same cause)",
        )  # fmt: skip
        assert operation.ended_at
        # nothing ran twice: each step was sent once more, and each is accounted for once
        assert set(Step.objects.filter(name="hello").values_list("attempt", flat=True)) == {2}
        assert states(operation) == {"fixed": 400, "again": 100}
        assert Incident.objects.count() == 2

    def test_success_counts_processed_steps_not_queued_ones(self):
        operation = running(failed(3))
        advance(operation)
        requests = claimed()
        advance(operation)
        assert ended(operation) == ("running", "3 resubmitted: 3 in progress")
        record([reply_to(requests[0])])
        record([reply_to(requests[1], "rejected", code="other", message="new")])
        advance(operation)
        summary = "3 resubmitted: 1 fixed, 1 failed (other cause), 1 in progress"
        assert ended(operation) == ("running", summary)
        record([reply_to(requests[2])])
        advance(operation)
        summary = "3 resubmitted: 2 fixed, 1 failed (other cause)"
        assert ended(operation) == ("ended", summary)

    def test_item_that_failed_in_between_is_not_a_success(self):
        (task,) = failed(1)
        operation = running([task])
        advance(operation)
        answer(lambda request: reply_to(request, "rejected", code="no_route"))
        step = Step.objects.get(task=task, name="hello")
        assert resubmit(step.id, attempt=2, actor="bob", reason="once more") is None
        run_to_end(task)
        assert task.state == "processed"
        advance(operation)
        assert ended(operation)[1] == "1 resubmitted: 1 failed again (same cause)"

    def test_supervisor_continues_operations_in_its_sweep(self):
        staff()
        operation = running(failed(3), rate=2)
        leadership = lead()
        assert sweep(leadership)["acted on in bulk"] == 1  # the first at once, then by the rate
        pass_time(operation, 1)
        assert sweep(leadership)["acted on in bulk"] == 2
        assert len(claimed()) == 3

    def test_history_names_the_operation(self):
        operation = running(failed(1))
        advance(operation)
        event = Event.objects.get(kind="resubmitted")
        assert (event.actor, event.reason) == ("ann", "it is mended")
        assert event.operation == operation


class TestTheRate:
    def test_rate_limits_items_a_second(self):
        # slow enough for the time that the test itself takes not to matter
        operation = running(failed(30), rate=0.1)
        advance(operation)
        assert operation.sent == 1
        assert advance(operation, seconds=104).sent == 11
        assert advance(operation, seconds=0).sent == 11
        assert advance(operation, seconds=50).sent == 16

    def test_rate_is_not_caught_up_after_an_absence(self):
        operation = running(failed(30), rate=5)
        advance(operation, seconds=0)
        pass_time(operation, 3600)
        runner.advance(lead(), reach=2.0)
        operation.refresh_from_db()
        assert operation.sent == 11

    def test_rate_starts_slowly_after_a_pause(self):
        operation = running(failed(30), rate=0.1)
        advance(operation)
        assert controls.pause(operation.id, actor="bob", reason="look first") is None
        assert advance(operation, seconds=600).sent == 1
        assert controls.resume(operation.id, actor="cat") is None
        assert advance(operation, seconds=0).sent == 1
        assert advance(operation, seconds=54).sent == 6
        acts = Event.objects.filter(kind="bulk").order_by("id").values_list("detail__what", "actor")
        assert list(acts) == [("confirmed", "ann"), ("paused", "bob"), ("resumed", "cat")]

    def test_operation_sends_more_than_a_batch_in_one_sweep(self):
        operation = running(failed(450))
        assert advance(operation).sent == 450


class TestFirstSeconds:
    def test_nothing_is_sent_in_them(self):
        operation = confirmed(failed(2))
        advance(operation)
        assert (operation.state, states(operation)) == ("waiting", {"waiting": 2})
        assert operation.starts_at > operation.created_at

    def test_it_can_be_taken_back_whole(self):
        operation = confirmed(failed(2))
        assert controls.abort(operation.id, actor="ann") is None
        begin(operation)
        advance(operation)
        assert ended(operation) == ("aborted", "2 skipped")
        assert operation.ended_at
        assert not Event.objects.filter(kind="resubmitted").exists()
        assert last_action_on_operation(operation.id).did == "cancelled it"


class TestAbort:
    def test_the_rest_is_skipped_and_what_was_sent_is_followed(self):
        operation = running(failed(5), rate=1)
        advance(operation, seconds=0)
        advance(operation, seconds=1)
        assert controls.abort(operation.id, actor="bob") is None
        operation.refresh_from_db()
        assert (operation.state, operation.ended_at) == ("aborted", None)
        assert states(operation) == {"sent": 2, "skipped": 3}
        assert answer(reply_to) >= 2
        advance(operation)
        assert operation.ended_at
        assert states(operation) == {"fixed": 2, "skipped": 3}

    def test_second_of_two_concurrent_actions_is_refused(self):
        operation = running(failed(2), rate=1)
        advance(operation)
        assert controls.pause(operation.id, actor="bob") is None
        assert controls.pause(operation.id, actor="cat") is Refusal.CHANGED
        assert last_action_on_operation(operation.id).actor == "bob"
        assert controls.abort(operation.id, actor="cat") is None
        assert controls.abort(operation.id, actor="bob") is Refusal.CHANGED
        assert controls.resume(operation.id, actor="bob") is Refusal.CHANGED


class TestSecondPerson:
    def limit(self, **limits):
        SupervisorPolicy.objects.update_or_create(id=1, defaults=limits)

    def test_above_a_number_of_items(self):
        self.limit(approve_items=2)
        ann, bob, cat = (person(name, "resubmit", "approve") for name in ("ann", "bob", "cat"))
        operation = confirmed(failed(3), actor=ann)
        assert (operation.state, operation.approval) == (
            "approval",
            "this affects 3 items (limit: 2)",
        )
        begin(operation)
        assert advance(operation).state == "approval"
        assert approve(operation.id, actor=who(ann)) is Refusal.SAME_PERSON
        (asked,) = Alert.objects.filter(closed_at=None, incident=None)
        assert asked.title == "Approval needed: resubmit of 3 items, created by ann"
        assert f"operation {operation.id}." in asked.detail
        assert approve(operation.id, actor=who("bob")) is Refusal.NOT_SIGNED_IN
        assert approve(operation.id, actor=who(bob)) is None
        assert not Alert.objects.filter(closed_at=None, incident=None).exists()
        assert approve(operation.id, actor=who(cat)) is Refusal.CHANGED
        begin(operation)
        advance(operation)
        assert advance(operation).sent == 3
        assert (operation.actor, operation.approved_by) == ("ann", "bob")
        assert (operation.actor_user, operation.approved_by_user) == (ann.id, bob.id)
        assert Event.objects.filter(detail__what="approved", actor="bob").exists()

    def test_not_at_it(self):
        self.limit(approve_items=3)
        assert confirmed(failed(3)).state == "waiting"

    def test_above_a_sum(self):
        self.limit(approve_items=None, approve_sum=5000)
        tasks = failed(3)
        Step.objects.filter(name="hello").update(charges={"amount": 2000, "currency": "EUR"})
        operation = confirmed(tasks)
        assert operation.money == {"EUR": 6000}
        assert operation.approval == "this affects €60.00 (limit: €50.00)"

    def test_refused_is_aborted(self):
        self.limit(approve_items=0)
        operation = confirmed(failed(1))
        assert controls.abort(operation.id, actor="bob", reason="not today") is None
        assert not Alert.objects.filter(closed_at=None, incident=None).exists()
        assert last_action_on_operation(operation.id).did == "rejected it"
        assert ended(operation)[0] == "aborted"

    def test_database_requires_the_approval(self):
        self.limit(approve_items=0)
        operation = confirmed(failed(1))
        rows = Operation.objects.filter(id=operation.id)
        for change in ({"state": "waiting"}, {"approved_by": "ann"}, {"state": "running"}):
            with pytest.raises(IntegrityError), transaction.atomic():
                rows.update(**change)


class TestChangedMeanwhile:
    def test_item_processed_meanwhile_is_skipped_with_the_reason(self):
        tasks = failed(4)
        operation = running(tasks)
        first, second, third, _ = (task.steps.get(name="hello") for task in tasks)
        assert resubmit(first.id, attempt=1, actor="bob", reason="now") is None
        assert (
            done_by_hand(second.id, attempt=1, actor="bob", reason="ok", result={"id": "1"}) is None
        )
        assert resubmit(third.id, attempt=1, actor="bob", reason="now") is None
        answer(lambda request: reply_to(request, "rejected", code="no_route"))
        advance(operation)
        advance(operation)
        reasons = dict(operation.item_set.values_list("step", "reason"))
        assert reasons[first.id] == Refusal.OTHER_ATTEMPT.value
        assert reasons[second.id] == Refusal.NOT_IN_ERROR.value
        assert reasons[third.id] == Refusal.OTHER_ATTEMPT.value
        assert states(operation) == {"skipped": 3, "sent": 1}

    def test_task_undone_meanwhile_is_skipped(self):
        (task,) = failed(1)
        operation = running([task])
        advance(operation)
        assert undo(task.id, actor="bob", reason="they changed their mind") is None
        advance(operation)
        assert ended(operation)[0] == "ended"
        assert operation.item_set.get().reason == "its task was undone meanwhile"

    def test_undo_covers_only_the_previewed_steps(self):
        live, done = new_task(), new_task()
        operation = running([live, done], "undo")
        (request,) = [claim for claim in claimed() if claim.task == done.id]
        record([reply_to(request)])
        run_to_end(done)
        assert done.state == "processed"
        advance(operation)
        advance(operation)
        reasons = dict(operation.item_set.values_list("task", "reason"))
        assert reasons[done.id] == Refusal.CHANGED.value
        assert reasons[live.id] == ""


class TestFreezing:
    def test_item_of_another_operation_is_skipped_and_named(self):
        (task,) = failed(1)
        first = confirmed([task])
        dry = drafted([task])
        assert dry.preview["eligible"] == 0
        (reason,) = dry.preview["skipped"]
        assert f"operation {first.id} " in reason
        refusal = confirm(dry.id, chosen([task]), actor=who("bob"), reason="x", rate=1)
        assert refusal is Refusal.NOTHING_TO_DO
        assert not dry.item_set.exists()

    def test_database_refuses_two_open_items_on_one_step(self):
        step = in_error()
        operation = confirmed([step.task])
        with pytest.raises(IntegrityError), transaction.atomic():
            OperationItem.objects.create(
                operation=operation, task=step.task, step=step, attempt=1, seen="error"
            )

    def test_selected_tasks_are_all_accounted_for(self):
        tasks = [*failed(2), new_task()]
        operation = confirmed(tasks)
        assert operation.preview["skipped"] == {"no step is in error": 1}
        assert (operation.items, operation.waiting, operation.skipped) == (3, 2, 1)

    def test_filter_selects_only_tasks_that_the_action_applies_to(self):
        failed(2)
        new_task()
        everything = chosen(Task.objects.all())
        assert items.preview_figures("resubmit", everything)["eligible"] == 2
        assert items.preview_figures("resubmit", everything)["skipped"] == {}
        assert items.preview_figures("hold", everything)["eligible"] == 3
        assert items.preview_figures("release", everything)["eligible"] == 0
        assert items.preview_figures("resubmit", chosen(Task.objects.none()))["eligible"] == 0
        named = chosen(Task.objects.filter(reference__startswith="100%"))
        assert items.preview_figures("resubmit", named)["eligible"] == 0

    def test_grown_selection_is_shown_again(self):
        failed(2)
        everything = chosen(Task.objects.all())
        dry = draft("resubmit", {"query": ""}, everything, actor=who("ann"))
        failed(1)
        refusal = confirm(dry.id, everything, actor=who("ann"), reason="x", rate=1)
        assert refusal is Refusal.GROWN
        assert not dry.item_set.exists()
        preview(dry, everything)
        assert confirm(dry.id, everything, actor=who("ann"), reason="x", rate=1) is None
        again = confirm(dry.id, everything, actor=who("ann"), reason="x", rate=1)
        assert again is Refusal.CHANGED

    def test_sample_consists_of_the_oldest_items(self):
        tasks = failed(3)
        operation = running(tasks, sample=1)
        assert operation.item_set.get().task == tasks[0]
        assert operation.preview["eligible"] == 3

    def test_dry_run_counts_calls_and_money(self):
        tasks = failed(2)
        Step.objects.filter(name="hello").update(charges={"amount": 150, "currency": "EUR"})
        shown = drafted(tasks).preview
        assert shown["calls"] == [{"agent": "greeter", "action": "greet", "count": 2}]
        assert shown["money"] == {"EUR": 300}
        done = new_task()
        run_to_end(done)
        Step.objects.filter(task=done).update(charges={"amount": 7, "currency": "EUR"})
        shown = drafted([done], "undo").preview
        assert shown["money"]["EUR"] == 7 * sum(call["count"] for call in shown["calls"])

    def test_forgotten_key_needs_a_person(self):
        (task,) = failed(1)
        Step.objects.filter(task=task, name="hello").update(
            in_doubt=True, error_code="key_forgotten"
        )
        assert drafted([task]).preview["skipped"] == {Refusal.KEY_FORGOTTEN.value: 1}

    def test_old_drafts_are_deleted(self):
        old, fresh = drafted(failed(1)), drafted([])
        Operation.objects.filter(id=old.id).update(created_at="2020-01-01T00:00Z")
        assert runner.prune_drafts() == 1
        assert Operation.objects.get() == fresh


class TestOtherActs:
    def test_tasks_are_undone(self):
        done, mid = new_task(), new_task()
        operation = running([done, mid], "undo")
        advance(operation)
        advance(operation)
        assert Task.objects.filter(undo_at__isnull=False).count() == 2
        answer(reply_to)
        advance(operation)
        assert ended(operation) == ("ended", "2 submitted for undo: 2 undone")
        assert Event.objects.filter(kind="undo", operation=operation).count() == 2

    def test_irreversible_step_stops_an_undo_unless_forced(self):
        tasks = [irreversible(new_task()), new_task()]
        shown = drafted(tasks, "undo").preview
        assert (shown["eligible"], shown["forced"]) == (1, 0)
        assert shown["skipped"] == {Refusal.IRREVERSIBLE.value: 1}
        assert shown["standing"] == [{"step": "again", "why": "they heard it", "count": 1}]
        forced = drafted(tasks, "undo", forced=True).preview
        assert (forced["eligible"], forced["forced"], forced["skipped"]) == (2, 1, {})
        assert forced["standing"] == shown["standing"]
        assert sum(call["count"] for call in forced["calls"]) > sum(
            call["count"] for call in shown["calls"]
        )
        operation = running(tasks, "undo", forced=True)
        for _ in tasks:
            advance(operation)
        answer(reply_to)
        advance(operation)
        assert ended(operation) == ("ended", "2 submitted for undo: 2 undone")
        events = Event.objects.filter(kind="undo", operation=operation).order_by("task_id")
        assert [(event.detail["forced"], event.detail["standing"]) for event in events] == [
            (True, ["again"]),
            (False, []),
        ]

    def test_forced_undo_leaves_only_previewed_effects(self):
        task = irreversible(new_task())
        operation = running([task], "undo", forced=True)
        Step.objects.filter(task=task, name="hello").update(irreversible="it is in the post")
        advance(operation)
        assert ended(operation) == ("ended", "1 skipped")
        assert operation.why == {Refusal.IRREVERSIBLE.value: 1}
        task.refresh_from_db()
        assert task.state == "processed"

    def test_confirmation_without_sight_of_the_force_is_refused(self):
        tasks = [irreversible(new_task())]
        word = {"actor": who("ann"), "reason": "it is recalled", "rate": 20.0}
        for forced in (True, False):
            seen = drafted(tasks, "undo", forced=forced)
            choice = chosen(tasks, forced=not forced)
            assert confirm(seen.id, choice, **word) is Refusal.CHANGED
        assert not Event.objects.filter(kind="bulk").exists()

    def test_only_an_undo_can_be_forced(self):
        with pytest.raises(IntegrityError):
            drafted([new_task()], "hold", forced=True)

    def test_failed_undo_is_not_a_success(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request)])
        operation = running([task], "undo")
        advance(operation)

        def how(request):
            return reply_to(request, "rejected" if ":undo:" in request.key else "done", code="no")

        answer(how)
        advance(operation)
        assert ended(operation) == ("ended", "1 submitted for undo: 1 failed (other cause)")
        assert operation.item_set.get().reason.startswith("no: ")

    def test_tasks_are_held_and_released(self):
        done = new_task()
        run_to_end(done)
        tasks = [new_task(), new_task()]
        held = running([*tasks, done], "hold")
        assert hold(task=tasks[0].id, actor="bob", reason="first") is not None
        advance(held)
        advance(held)
        assert Hold.objects.filter(until=None).count() == 2
        assert ended(held)[1] == "1 held; 2 skipped"
        released = running(tasks, "release")
        advance(released)
        advance(released)
        assert ended(released) == ("ended", "2 released")
        assert not Hold.objects.filter(until=None).exists()

    def test_steps_are_marked_as_done(self):
        tasks = failed(2)
        operation = running(tasks, "by_hand", result={"id": "by phone"})
        advance(operation)
        advance(operation)
        assert ended(operation) == ("ended", "2 marked as done")
        assert set(Step.objects.filter(name="hello").values_list("process_state", flat=True)) == {
            "processed"
        }


def test_item_that_cannot_be_sent_does_not_stop_the_others(caplog):
    tasks = failed(3)
    # an unforeseen error: the consequences for this one cannot be computed
    Step.objects.filter(task=tasks[0], name="again").update(request={"x": {"$from": 5}})
    operation = running(tasks, "by_hand", result={"id": "1"})
    advance(operation)
    advance(operation)
    assert ended(operation) == ("ended", "2 marked as done; 1 skipped")
    assert "action failed" in operation.item_set.get(state="skipped").reason
    assert "a batch failed" in caplog.text


def test_only_the_leader_continues_an_operation():
    operation = running(failed(2))
    former = lead("supervisor-1")
    Lease.objects.update(expires_at="2020-01-01T00:00Z")
    assert advance(operation, former).sent == 0
    successor = lead("supervisor-2")
    assert advance(operation, former).sent == 0
    assert advance(operation, successor).sent == 2


def test_triggers_match_the_table_of_moves():
    migration = import_module("orchestration.migrations.0002_guards")
    for moves, stored in (
        (OPERATION_MOVES, migration.OPERATION_MOVES), (ITEM_MOVES, migration.ITEM_MOVES),
    ):  # fmt: skip
        assert {state.value: sorted(after) for state, after in moves.items()} == {
            state: sorted(after) for state, after in stored.items()
        }


def test_the_database_refuses_illegal_moves():
    operation = confirmed(failed(1))
    for change in (
        lambda: Operation.objects.update(state="paused"),
        lambda: OperationItem.objects.update(state="fixed", ended_at=DatabaseNow()),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()
    assert states(operation) == {"waiting": 1}
