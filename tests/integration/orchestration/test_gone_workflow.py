"""Requests about tasks of a workflow that no release declares any more: they are undone, or answered."""

from dataclasses import replace
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection

from orchestration import api, registry, task_requests
from orchestration.models import StatusMessage, Submission, Task, TaskRequest
from orchestration.models.fields import DatabaseNow
from tests.support.engine import in_error, new_task, run_to_end

pytestmark = pytest.mark.django_db
ROLE = "application_of_the_past"


@pytest.fixture
def gone(monkeypatch):
    """Have "greet" kept by the shop; return what removes it from the release, and what it was."""
    calls = []
    greet = replace(registry.workflows["greet"], owner_application="shop", accepted=calls.extend)
    monkeypatch.setitem(registry.workflows, "greet", greet)
    return lambda: monkeypatch.delitem(registry.workflows, "greet"), greet, calls


def ask_undo(reference="7", workflow="greet"):
    number = uuid4()
    api.request_undo(workflow, reference, actor="customer", reason="enough", id=number)
    return number


def take_for_minutes():
    """Have each try's time come, as long as a deploy may be what is under way."""
    for _ in range(task_requests.UNKNOWN_TRIES):
        assert task_requests.take(10).done == 1
        assert TaskRequest.objects.get().done_at is None
        TaskRequest.objects.update(retry_at=DatabaseNow())
    assert task_requests.take(10).done == 1


def test_task_is_undone_by_what_its_steps_have(gone):
    task = new_task("7")
    run_to_end(task)
    remove, _, calls = gone
    remove()
    asked = ask_undo()
    take_for_minutes()
    task.refresh_from_db()
    assert task.state == "undoing"
    message = StatusMessage.objects.filter(task=task, kind="undoing").get()
    assert (message.reply_to, message.detail) == ("shop", {"request": str(asked)})
    run_to_end(task)
    assert task.state == "undone"
    assert calls == []


def test_request_waits_for_a_worker_that_knows_the_workflow(gone, monkeypatch):
    task = new_task("7")
    remove, greet, calls = gone
    remove()
    ask_undo()
    assert task_requests.take(10).done == 1
    task.refresh_from_db()
    assert task.state == "pending"
    monkeypatch.setitem(registry.workflows, "greet", greet)  # a worker of the other release
    TaskRequest.objects.update(retry_at=DatabaseNow())
    assert task_requests.take(10).done == 1
    task.refresh_from_db()
    assert (task.state, len(calls)) == ("undone", 1)


def test_tries_that_failed_otherwise_do_not_make_a_workflow_gone(gone):
    task = new_task("7")
    gone[0]()
    ask_undo()
    TaskRequest.objects.update(tries=30, problem="failing", retry_at=DatabaseNow())
    for _ in range(2):
        assert task_requests.take(10).done == 1
        TaskRequest.objects.update(retry_at=DatabaseNow())
    task.refresh_from_db()
    assert task.state == "pending"


def test_application_reads_why_a_request_is_refused(gone):
    step = in_error(new_task("7"), "rejected")
    asked = uuid4()
    api.request_resubmit(
        "greet", "7", step.name, attempt=step.attempt, actor="a", reason="r", id=asked
    )
    gone[0]()
    take_for_minutes()
    message = StatusMessage.objects.filter(kind="refused").get()
    assert (message.reply_to, message.task_id) == ("shop", step.task_id)
    assert message.detail == {"request": str(asked), "refusal": "NO_SUCH_WORKFLOW"}


@pytest.mark.parametrize("workflow", ["greet", "gret"])
def test_request_about_no_task_is_not_posted(gone, workflow):
    new_task("8")
    gone[0]()
    with pytest.raises(registry.NotRegistered, match="no task of it has the reference '7'"):
        ask_undo("7", workflow)
    assert not TaskRequest.objects.exists()


def test_only_an_undo_can_be_asked_for(gone):
    step = in_error(new_task("7"), "rejected")
    gone[0]()
    with pytest.raises(registry.NotRegistered, match="its tasks can only be undone"):
        api.request_resubmit(
            "greet", "7", step.name, attempt=step.attempt, actor="a", reason="r", id=uuid4()
        )


def test_request_waits_for_a_submission_of_it(gone):
    gone[0]()
    Submission.objects.create(workflow="greet", reference="7", data={"name": "Ada"})
    ask_undo()
    assert task_requests.take(10).done == 0
    Submission.objects.all().delete()
    take_for_minutes()
    assert TaskRequest.objects.get().refusal == "NO_SUCH_TASK"


def test_role_without_tables_may_ask_for_what_it_was_granted(gone):
    new_task("7")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")  # with the test's transaction it is dropped
    call_command("grant_application", ROLE, "shop")
    gone[0]()
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL SESSION AUTHORIZATION {ROLE}")
        ask_undo()
        cursor.execute("RESET SESSION AUTHORIZATION")
    take_for_minutes()
    assert Task.objects.get().state == "undone"
