"""Functions of Django's Tasks run as workflows of one step."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.db import transaction
from django_tasks import TaskResultStatus, task_backends
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist, TaskResultMismatch
from django_tasks.signals import task_enqueued, task_finished, task_started

from orchestration import api, conf, registry
from orchestration.applications import by_hand
from orchestration.housekeeping import agent_rows
from orchestration.models import Alert, Step, Submission, Task
from orchestration.transitions.resubmit import done_by_hand, resubmit
from orchestration.workers import jobs
from orchestration.workflows.workflow import Refused
from tests.support import functions
from tests.support.engine import staff
from tests.support.violations import violations

READY, RUNNING, FAILED, SUCCESSFUL = (
    TaskResultStatus[name] for name in ("READY", "RUNNING", "FAILED", "SUCCESSFUL")
)


def test_result_of_a_function(run):
    result = functions.add.enqueue(1, 2, to=3)
    assert (result.status, result.attempts) == (READY, 0)
    run.go()
    result.refresh()
    assert (result.status, result.return_value) == (SUCCESSFUL, 6)
    assert (result.attempts, result.worker_ids) == (1, ["tasks.default@testing"])
    assert result.started_at == result.finished_at == run.clock.now
    assert (result.args, result.kwargs, result.errors) == ([1, 2], {"to": 3}, [])
    task = Task.objects.get()
    assert (task.workflow, task.label) == ("tasks.default", "functions.add")


def test_function_uses_the_database_on_another_queue(run):
    result = functions.write.enqueue("editors")
    run.go()
    result.refresh()
    assert result.return_value == Group.objects.get(name="editors").id
    task = Task.objects.get()
    assert (task.workflow, task.priority) == ("tasks.mail", 5)
    assert task.fairness_key == "tests.support.functions.write"


def test_coroutine_is_awaited(run):
    result = functions.later.enqueue("authors")
    run.go()
    result.refresh()
    assert result.return_value == ["authors", True]


def test_enqueued_with_the_callers_transaction_or_not_at_all(run):
    with transaction.atomic():
        functions.add.enqueue(1, 2)
        transaction.set_rollback(True)
    assert not Submission.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_enqueued_by_a_coroutine():
    async def enqueue():
        result = await functions.add.aenqueue(1, 2)
        return await functions.add.aget_result(result.id)

    assert async_to_sync(enqueue)().status == READY
    assert Submission.objects.count() == 1


def test_run_after_is_waited_for(run):
    at = run.clock.now + timedelta(hours=30)
    result = functions.add.using(run_after=at).enqueue(1, 2)
    run.go()
    result.refresh()
    assert (result.status, result.task.run_after) == (READY, at)
    assert violations() == []
    assert run.jump() == 30 * 3600
    assert result.task.get_result(result.id).status == SUCCESSFUL
    assert not Task.objects.get().overdue


def test_exception_is_a_failure_and_not_repeated(run):
    result = functions.fail.enqueue("no such file")
    run.finish()
    result.refresh()
    assert (result.status, result.attempts) == (FAILED, 1)
    (error,) = result.errors
    assert error.exception_class is ValueError
    assert "no such file" in error.traceback
    with pytest.raises(ValueError, match="failed"):
        assert result.return_value
    assert Alert.objects.filter(closed_at=None).count() == 1


def test_idempotent_function_is_called_again_after_an_exception(run):
    functions.FAILURES += [OSError("away"), SystemExit(1)]
    result = functions.fail_at_first.enqueue()
    run.finish()
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == (SUCCESSFUL, "done", 3)
    assert [error.exception_class for error in result.errors] == [OSError, SystemExit]


def test_function_may_say_that_it_did_nothing(run):
    result = functions.attempt.enqueue()
    run.finish()
    result.refresh()
    assert result.return_value == {"attempt": 3, "id": result.id}
    assert [error.exception_class for error in result.errors] == [api.Transient] * 2


def test_function_may_refuse(run):
    result = functions.refuse.enqueue()
    run.finish()
    result.refresh()
    assert (result.status, result.attempts) == (FAILED, 1)
    assert result.errors[0].exception_class is api.Rejected
    assert Step.objects.get().error_code == "not_today"


def test_value_without_a_form_in_json_is_a_failure(run):
    result = functions.unwritable.enqueue()
    run.go()
    result.refresh()
    assert (result.status, result.errors[0].exception_class) == (FAILED, TypeError)


class TestDoubt:
    """A worker may have died, or not have answered in time: the function may have run."""

    def lost(self, run, function):
        """Return the result of a call whose worker fell silent, once that is noticed."""
        functions.FAILURES.append(api.Unknown("worker_died"))
        result = function.enqueue(*["x"] * (function is functions.fail))
        run.finish()
        result.refresh()
        return result

    def test_function_that_is_not_idempotent_waits_for_a_person(self, run):
        result = self.lost(run, functions.fail)
        assert (result.status, result.attempts) == (FAILED, 2)
        step = Step.objects.get()
        assert (step.error_code, step.in_doubt) == ("may_have_run", True)
        assert functions.FAILURES == []  # it was called once

    def test_person_may_have_it_called_again_where_nothing_was_done(self, run):
        self.lost(run, functions.fail)
        step = Step.objects.get()
        known = {"attempt": step.attempt, "actor": "olga", "reason": "looked"}
        assert resubmit(step.id, **known, nothing_done=True) is None
        run.go()
        assert Step.objects.get().error_code == "builtins.ValueError"  # it was called

    def test_person_may_record_what_it_returned(self, run):
        result = self.lost(run, functions.fail)
        step = Step.objects.get()
        known = {"attempt": step.attempt, "actor": "olga", "reason": "looked"}
        assert done_by_hand(step.id, **known, result={"value": 7}) is None
        result.refresh()
        assert (result.status, result.return_value) == (SUCCESSFUL, 7)

    def test_idempotent_function_is_called_again(self, run):
        result = self.lost(run, functions.fail_at_first)
        assert (result.status, result.attempts) == (SUCCESSFUL, 2)


def test_only_decorated_functions_are_called(run):
    data = {"function": "tests.support.functions.plain", "args": [], "kwargs": {}}
    task = run.submit("tasks.default", {**data, "run_after": None})
    run.go()
    assert task.step("call").error_code == "no_such_function"


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["add", "plain", "later_release"])
def test_function_is_not_started_by_hand(name):
    data = {"function": f"tests.support.functions.{name}", "args": [1, 2], "kwargs": {}}
    asked = {"actor": "operator", "reason": "why not"}
    with pytest.raises(ValueError, match="by_hand=True"):
        by_hand.start(
            "tasks.default", by_hand.new_reference(), {**data, "run_after": None}, **asked
        )
    assert not Submission.objects.exists()


def test_function_that_says_so_is_started_by_hand(run):
    data = {"function": "tests.support.functions.by_hand", "args": [], "kwargs": {}}
    asked = {"actor": "operator", "reason": "why not"}
    reference = by_hand.new_reference()
    assert by_hand.start("tasks.default", reference, {**data, "run_after": None}, **asked)


def test_what_a_function_is_called_with_is_guarded():
    assert registry.agents["tasks.default"].call_function.guarded == ("function", "args", "kwargs")


def test_function_of_a_later_release_is_waited_for(run):
    data = {"function": "tests.support.functions.later_release", "args": [], "kwargs": {}}
    task = run.submit("tasks.default", {**data, "run_after": None})
    run.go()
    assert task.step("call").error_code == "no_such_function"
    assert task.state == "processing"


@pytest.mark.parametrize("time", ["tomorrow", "2026-01-01T00:00:00", 7])
def test_time_that_is_none_is_refused(run, time):
    data = {"function": "tests.support.functions.add", "args": [1, 2], "kwargs": {}}
    with pytest.raises(Refused, match="run_after"):
        run.submit("tasks.default", {**data, "run_after": time})


def test_result_of_an_unknown_id(run):
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(uuid4().hex)


def test_result_of_another_function(run):
    result = functions.add.enqueue(1, 2)
    with pytest.raises(TaskResultMismatch):
        functions.fail.get_result(result.id)


def test_arguments_that_are_no_json(run):
    with pytest.raises(TypeError):
        functions.add.enqueue(object(), 1)


def test_queue_that_is_not_declared():
    with pytest.raises(InvalidTaskError):
        functions.add.using(queue_name="other")


def test_signals(run):
    seen = []
    receivers = {
        signal: lambda sender, task_result, name=name, **_: seen.append((name, task_result.status))
        for name, signal in (
            ("enqueued", task_enqueued), ("started", task_started), ("finished", task_finished)
        )
    }  # fmt: skip
    for signal, receiver in receivers.items():
        signal.connect(receiver)
    try:
        functions.add.enqueue(1, 2)
        functions.fail.enqueue("x")
        run.finish()
    finally:
        for signal, receiver in receivers.items():
            signal.disconnect(receiver)
    assert sorted(seen) == [
        ("enqueued", READY), ("enqueued", READY), ("finished", FAILED), ("finished", SUCCESSFUL),
        ("started", RUNNING), ("started", RUNNING),
    ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_worker_calls_functions_in_threads_of_its_process(monkeypatch):
    monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.01)  # seconds until a job ends
    agent_rows.ensure_agents()
    staff()
    results = [functions.write.enqueue("editors"), functions.write.enqueue("authors")]
    try:
        jobs.take_submissions()
        for _ in range(2):
            jobs.schedule()
            jobs.call_agent("tasks.mail")
        jobs.schedule()
    finally:
        jobs.close_runtimes()
        for thread in threading.enumerate():
            if thread.name.startswith("tasks.mail"):
                thread.join()  # its database connection ends with it
    made = []
    for result in results:
        result.refresh()
        made.append(Group.objects.get(id=result.return_value).name)
    assert made == ["editors", "authors"]
