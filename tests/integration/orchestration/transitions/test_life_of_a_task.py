"""The life of a task, verb by verb, on a real Postgres."""

import pytest
from django.db import IntegrityError, connection, transaction

from orchestration.decisions.progress import Refusal
from orchestration.models import Alert, Attempt, Event, Gate, Policy, Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.payloads.placeholders import Unresolved
from orchestration.registry import NotRegistered
from orchestration.states import FINAL_TASK_STATES, STEP_MOVES, TASK_MOVES, StepState
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.holds import hold, release
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit
from orchestration.workflows.workflow import Refused
from tests.support.engine import (
    claimed,
    in_error,
    new_task,
    reply_to,
    run_to_end,
    states,
    step_of,
    without_triggers,
)
from tests.support.messages import nested
from tests.support.moves import illegal_moves, legal_moves

pytestmark = pytest.mark.django_db
FORMER = (StepState.ERROR, StepState.SKIPPED)  # of the release before, for what was done by hand


def test_new_task_has_a_record_for_each_step():
    task = new_task("42")
    first, second = task.steps.order_by("id")
    assert (task.state, first.process_state, second.process_state) == (
        "pending",
        "pending",
        "waiting",
    )
    assert first.locked_by is None
    assert first.complete_by is None
    assert first.failure_count == 0
    assert first.request == {"to": "Ada"}


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (NewTask(workflow="great", reference="1", data={}), NotRegistered, "did you mean 'greet'"),
        (NewTask(workflow="greet", reference="1", data={}), Unresolved, "the input has no name"),
    ],
)
def test_invalid_task_leaves_no_rows(bad, error, words):
    good = NewTask(workflow="greet", reference="0", data={"name": "Ada"})
    with pytest.raises(error, match=words), transaction.atomic():
        create([good, bad])
    assert not Task.objects.exists()


def test_claim_records_the_worker_and_the_deadline():
    task = new_task()
    (request,) = claimed("scheduler-7")
    step = step_of(task)
    task.refresh_from_db()
    assert (step.process_state, step.locked_by, step.attempt) == ("processing", "scheduler-7", 1)
    assert request.complete_by == pytest.approx(step.complete_by.timestamp(), abs=0.001)
    allowed = (step.complete_by - step.dispatched_at).total_seconds()
    assert allowed == pytest.approx(Policy.objects.get(agent="greeter").time_allowed, abs=0.01)
    assert request.key == f"{task.id}:hello:do:1"
    assert task.state == "processing"
    assert claimed("scheduler-8") == []


def test_task_runs_to_its_end_and_passes_results_on():
    task = new_task()
    (request,) = claimed()
    record([reply_to(request, result={"id": "first"})])
    (request,) = claimed()
    assert request.payload == {"to": "Ada", "heard": "first"}
    record([reply_to(request)])
    task.refresh_from_db()
    assert task.state == "processed"
    assert task.ended_at is not None
    assert states(task) == {"hello": "processed", "again": "processed"}
    assert Attempt.objects.filter(step__task=task, outcome="done").count() == 2


def test_window_limits_requests_in_flight():
    Policy.objects.filter(agent="greeter").update(window=3)
    for _ in range(5):
        new_task()
    requests = claimed()
    assert len(requests) == 3
    assert claimed() == []
    record([reply_to(requests[0])])
    assert len(claimed()) == 1


def test_higher_priority_goes_first_then_age():
    old, new, urgent = new_task(), new_task(), new_task(priority=5)
    assert [request.task for request in claimed()] == [t.id for t in (urgent, old, new)]


class TestStepsThatGoAlone:
    """Those that have been silent for half of their chances: one of an agent's at once."""

    def new_tasks(self, count):
        tasks = [new_task() for _ in range(count)]
        Step.objects.filter(task__in=tasks, name="hello").update(isolated=True)
        return tasks

    def test_one_goes_at_once_beside_the_others_and_before_them(self):
        Policy.objects.filter(agent="greeter").update(window=2)
        other = new_task()
        first, second = self.new_tasks(2)
        urgent, beside = claimed()
        assert [urgent.task, beside.task] == [first.id, other.id]
        record([reply_to(beside)])
        (beside,) = claimed()
        assert (beside.task, beside.name) == (other.id, "again")
        record([reply_to(urgent)])
        assert [request.task for request in claimed()] == [second.id]

    def test_they_wait_for_one_that_fell_silent_until_that_is_found_out(self):
        first, second = self.new_tasks(2)
        assert [request.task for request in claimed()] == [first.id]
        assert claimed() == []
        Step.objects.filter(task=first, name="hello").update(locked_by=None)  # as a sweep does
        assert [request.task for request in claimed()] == [second.id]

    def test_none_is_the_probe_while_there_is_another(self):
        self.new_tasks(1)
        other = new_task()
        Gate.objects.filter(agent="greeter").update(state="open", probe_at=DatabaseNow())
        assert [request.task for request in claimed()] == [other.id]

    def test_one_that_is_held_does_not_keep_the_next_waiting(self):
        first, second = self.new_tasks(2)
        hold(task=first.id, actor="olga", reason="wait")
        assert [request.task for request in claimed()] == [second.id]

    def test_a_resubmitted_one_has_all_its_chances_again(self):
        step = in_error(self.new_tasks(1)[0])
        assert resubmit(step.id, attempt=1, actor="olga", reason="mended") is None
        step.refresh_from_db()
        assert (step.failure_count, step.isolated) == (0, False)


def test_held_agent_gets_no_requests_and_nothing_fails():
    task = new_task()
    number = hold(agent="greeter", actor="olga", reason="maintenance")
    assert claimed() == []
    assert states(task)["hello"] == "pending"
    assert release(number.id, actor="olga", reason="done") is None
    assert len(claimed()) == 1


def test_changed_policy_applies_to_the_next_claim():
    Policy.objects.filter(agent="greeter").update(tries=7, call_timeout=1.5, time_allowed=99)
    new_task()
    (request,) = claimed()
    assert (request.tries, request.call_timeout) == (7, 1.5)


class TestReplies:
    @pytest.mark.parametrize("outcome", ["transient", "unknown"])
    def test_failed_step_stays_processing_until_the_supervisor_counts_it(self, outcome):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, outcome)])
        step = step_of(task)
        assert (step.process_state, step.locked_by, step.failure_count) == ("processing", None, 0)
        assert step.outcome == outcome
        assert Attempt.objects.get(step=step).outcome == outcome

    def test_rejection_is_an_error_with_an_alert_at_once(self):
        step = in_error()
        step.task.refresh_from_db()
        assert (step.process_state, step.task.state) == ("error", "error")
        assert step.alert.closed_at is None
        assert "hello failed (rejected_code)" in step.alert.title
        assert Event.objects.get(step=step).kind == "error"

    def test_one_cause_is_one_alert(self):
        for _ in range(3):
            new_task()
        record([reply_to(request, "rejected") for request in claimed()])
        in_error()
        alert = Alert.objects.get()
        assert alert.count == 4
        assert alert.steps.count() == 4

    def test_only_the_first_reply_counts(self):
        task = new_task()
        (request,) = claimed()
        done = reply_to(request)
        recorded = record([done, done, reply_to(request, "rejected")])
        assert recorded.accepted == 1
        assert [why for _, why in recorded.refused] == [Refusal.NOT_PROCESSING] * 2
        assert record([done]).accepted == 0
        assert Attempt.objects.filter(step__task=task).count() == 1
        assert states(task) == {"hello": "processed", "again": "pending"}

    def test_reply_to_an_older_attempt_is_kept_without_effect(self):
        task = new_task()
        (old,) = claimed()
        Step.objects.filter(id=old.step).update(
            process_state="pending", locked_by=None, complete_by=None
        )
        (new,) = claimed()
        recorded = record([reply_to(old)])
        assert recorded.refused[0][1] is Refusal.OTHER_ATTEMPT
        assert step_of(task).process_state == "processing"
        assert Event.objects.get(task=task, kind="refused").attempt == 1
        assert record([reply_to(new)]).accepted == 1

    def test_reply_to_an_unknown_step_is_refused(self):
        task = new_task()
        (request,) = claimed()
        other = new_task()
        strange = [
            reply_to(request, step=request.step + 1000),
            reply_to(request, task=other.id),
            reply_to(request, task="00000000-0000-0000-0000-000000000000"),
        ]
        recorded = record(strange)
        assert [why for _, why in recorded.refused] == [Refusal.NO_SUCH_STEP] * 3
        assert states(task)["hello"] == "processing"

    def test_request_that_cannot_be_built_is_an_error(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, result={"other": 1})])
        step = step_of(task, "again")
        assert (step.process_state, step.error_code) == ("error", "request_not_built")
        assert step.error_message == "the result of hello has no id"
        assert step.alert is not None

    @pytest.mark.parametrize(
        ("heard", "why"), [("x" * 200_000, "bytes; at most"), (nested(200), "nested deeper than")]
    )
    def test_request_that_fits_no_action_is_an_error_when_built(self, heard, why):
        task = new_task(data={"name": "y" * 100_000})
        (request,) = claimed()
        record([reply_to(request, result={"id": heard})])
        step = step_of(task, "again")
        assert (step.process_state, step.error_code) == ("error", "request_not_built")
        assert why in step.error_message

    def test_first_request_that_fits_no_action_is_refused(self):
        with pytest.raises(Refused, match="the request of hello cannot be sent"):
            new_task(data={"name": "y" * 300_000})

    def test_queries_of_a_batch_are_independent_of_its_size(self, django_assert_num_queries):
        def turn(count):
            for _ in range(count):
                new_task()
            requests = claimed()
            record([reply_to(request) for request in requests])
            run = [reply_to(request) for request in claimed()]
            with connection.execute_wrapper(counter := Counter()):
                record(run)
                claimed()
            return counter.count

        assert turn(1) == turn(50)


class Counter:
    def __init__(self):
        self.count = 0

    def __call__(self, execute, *arguments):
        self.count += 1
        return execute(*arguments)


class TestResubmit:
    def act(self, step, attempt=None):
        return resubmit(step.id, attempt=attempt or step.attempt, actor="olga", reason="mended")

    def test_after_a_rejection_it_gets_a_new_key_and_runs_on(self):
        step = in_error()
        assert self.act(step) is None
        task = step.task
        (request,) = claimed()
        assert request.key.endswith(":2")
        assert request.attempt == 2
        record([reply_to(request)])
        run_to_end(task)
        assert task.state == "processed"
        event = Event.objects.get(kind="resubmitted")
        assert (event.actor, event.reason, event.attempt) == ("olga", "mended", 1)

    def test_after_an_unknown_outcome_it_keeps_its_key(self):
        step = in_error()
        Step.objects.filter(id=step.id).update(outcome="unknown")
        assert self.act(step) is None
        (request,) = claimed()
        assert request.key.endswith(":1")

    def test_it_starts_counting_again_and_closes_the_alert_with_its_last_step(self):
        first, second = in_error(), in_error()
        alert = first.alert
        self.act(first)
        alert.refresh_from_db()
        assert alert.closed_at is None
        self.act(second)
        alert.refresh_from_db()
        assert alert.closed_at is not None
        assert step_of(first.task).failure_count == 0

    def test_a_second_time_is_refused(self):
        step = in_error()
        assert self.act(step) is None
        assert self.act(step) is Refusal.NOT_IN_ERROR
        assert Event.objects.filter(kind="resubmitted").count() == 1

    def test_one_that_has_failed_again_since_is_refused(self):
        step = in_error()
        self.act(step)
        in_error(step.task)
        assert self.act(step, attempt=1) is Refusal.OTHER_ATTEMPT
        assert self.act(step, attempt=2) is None

    def test_one_whose_request_cannot_be_built_is_refused(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, result={"other": 1})])
        step = step_of(task, "again")
        refusal = resubmit(step.id, attempt=0, actor="olga", reason="try")
        assert refusal is Refusal.NOT_BUILDABLE
        assert claimed() == []

    def test_one_whose_request_can_be_built_by_now_is_built(self):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, result={"other": 1})])
        Step.objects.filter(task=task, name="hello").update(result={"id": "g7"})
        step = step_of(task, "again")
        assert resubmit(step.id, attempt=0, actor="olga", reason="mended by hand") is None
        (request,) = claimed()
        assert request.payload == {"to": "Ada", "heard": "g7"}

    def test_of_nothing_is_refused(self):
        assert resubmit(12345, attempt=1, actor="olga", reason="?") is Refusal.NO_SUCH_STEP


def columns_of(state):
    """Return the values of a step's columns that its state asks for."""
    alert = Alert.objects.get_or_create(fingerprint="x", title="x")[0]
    return {
        "process_state": state,
        "alert": alert if state == "error" else None,
        "complete_by": DatabaseNow() if state == "processing" else None,
        "pending_since": DatabaseNow() if state == "pending" else None,
        "result": {} if state == "processed" else None,
    }


def columns_of_task(state):
    """Return the values of a task's columns that its state asks for."""
    return {"state": state, "ended_at": DatabaseNow() if state in FINAL_TASK_STATES else None}


def step_in(state):
    """Return a new step that was put into a state."""
    step = step_of(new_task())
    with without_triggers():
        Step.objects.filter(id=step.id).update(**columns_of(state))
    return step


def task_in(state):
    """Return a new task that was put into a state."""
    task = new_task()
    with without_triggers():
        Task.objects.filter(id=task.id).update(**columns_of_task(state))
    return task


class TestTheDatabaseItself:
    @pytest.mark.parametrize(
        ("before", "after"), [move for move in illegal_moves(STEP_MOVES) if move != FORMER]
    )
    def test_refuses_every_illegal_move_of_a_step(self, before, after):
        step = step_in(before)
        with pytest.raises(IntegrityError, match="illegal move"), transaction.atomic():
            Step.objects.filter(id=step.id).update(process_state=after)

    def test_makes_what_the_release_before_calls_skipped_processed(self):
        step = step_in("error")
        changed = {"process_state": "skipped", "result": {}, "alert": None}
        Step.objects.filter(id=step.id).update(**changed)
        step.refresh_from_db()
        assert (step.process_state, step.done_by) == ("processed", "?")

    @pytest.mark.parametrize(("before", "after"), legal_moves(STEP_MOVES))
    def test_allows_every_legal_move_of_a_step(self, before, after):
        step = step_in(before)
        changed = Step.objects.filter(id=step.id).update(**columns_of(after))
        assert changed == 1

    @pytest.mark.parametrize(("before", "after"), illegal_moves(TASK_MOVES))
    def test_refuses_every_illegal_move_of_a_task(self, before, after):
        task = task_in(before)
        with pytest.raises(IntegrityError, match="illegal move"), transaction.atomic():
            Task.objects.filter(id=task.id).update(state=after)

    @pytest.mark.parametrize(("before", "after"), legal_moves(TASK_MOVES))
    def test_allows_every_legal_move_of_a_task(self, before, after):
        task = task_in(before)
        changed = Task.objects.filter(id=task.id).update(**columns_of_task(after))
        assert changed == 1

    @pytest.mark.parametrize(
        ("constraint", "change"),
        [
            ("step_deadline_while_processing", {"process_state": "processing"}),
            ("step_locked_while_processing", {"locked_by": "me"}),
            ("step_error_has_alert", {"alert": "new"}),
            ("orchestration_step_failure_count_check", {"failure_count": -1}),
        ],
    )
    def test_refuses_rows_that_make_no_sense(self, constraint, change):
        step = step_of(new_task())
        if "alert" in change:
            change = {"alert": Alert.objects.create(fingerprint="x", severity="warning", title="x")}
        with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
            Step.objects.filter(id=step.id).update(**change)

    def test_refuses_to_change_history(self):
        in_error()
        for model in (Attempt, Event):
            with pytest.raises(IntegrityError, match="rows are only added"), transaction.atomic():
                model.objects.update(reason="x") if model is Event else model.objects.update(
                    tries=9
                )
