"""What applications ask for about their tasks: durable, once, with what they write of it (P18, P27)."""

import time
from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration import api, registry, submission, task_requests
from orchestration.applications import task_status
from orchestration.dead_letters import actions
from orchestration.decisions.progress import Refusal
from orchestration.messaging import queues
from orchestration.messaging.messages import Accepted
from orchestration.models import Alert, StatusMessage, Step, Submission, Task, TaskRequest
from orchestration.transitions import replies
from tests.support.database import another
from tests.support.engine import claimed, in_error, new_task, reply_to, run_to_end

pytestmark = pytest.mark.django_db


@pytest.fixture
def accepted(monkeypatch):
    """Have "greet" kept by the shop; return what its hook is called with, and what it raises."""
    calls, errors = [], []

    def hook(batch):
        calls.extend(batch)
        if errors:
            raise errors[0]

    workflow = replace(registry.workflows["greet"], owner_application="shop", accepted=hook)
    monkeypatch.setitem(registry.workflows, "greet", workflow)
    return calls, errors


def ask_undo(reference, number=None):
    number = number or uuid4()
    api.request_undo("greet", reference, actor="customer", reason="changed my mind", id=number)
    return number


def ask_again(step, attempt=None, **more):
    number = uuid4()
    api.request_resubmit(
        "greet", step.task.reference, step.name, attempt=step.attempt if attempt is None else attempt,
        actor="customer", reason="mended", id=number, **more,
    )  # fmt: skip
    return number


def last_message():
    return StatusMessage.objects.filter(reply_to="shop").latest("id")


def test_undo_is_carried_out_and_attributed(accepted):
    calls, _ = accepted
    task = new_task("7")
    asked = ask_undo("7")
    assert task_requests.take(10).done == 1
    task.refresh_from_db()
    assert task.state == "undone"
    (call,) = calls
    assert (call.reference, call.id, call.what) == ("7", asked, "undo")
    assert last_message().detail == {"request": str(asked)}
    assert last_message().progress["state"] == "undone"
    assert task_requests.take(10).done == 0


def test_repeated_request_is_carried_out_once(accepted):
    new_task("7")
    asked = ask_undo("7")
    ask_undo("7", asked)
    assert TaskRequest.objects.count() == 1
    task_requests.take(10)
    ask_undo("7", asked)
    assert task_requests.take(10).done == 0
    assert not StatusMessage.objects.filter(kind="refused").exists()


def test_step_in_error_is_retried_with_the_applications_input(accepted):
    calls, _ = accepted
    step = in_error(new_task("7"), "rejected")
    asked = ask_again(step, amendment=api.Amendment(request={"to": "Eve"}), note={"card": "other"})
    assert task_requests.take(10).done == 1
    step.refresh_from_db()
    assert (step.process_state, step.request["to"]) == ("pending", "Eve")
    assert calls[0].note == {"card": "other"}
    assert last_message().detail == {"request": str(asked)}
    assert last_message().kind == "resumed"


@pytest.mark.parametrize(
    "change", [{"request": {"to": "Eve"}}, {"data": {"name": "Eve"}}], ids=["request", "input"]
)
def test_guarded_field_changes_only_where_the_workflow_permits_it(accepted, monkeypatch, change):
    action = registry.agents["greeter"].greet
    monkeypatch.setattr(action, "guarded", ("to",))
    step = in_error(new_task("7"), "rejected")
    ask_again(step, amendment=api.Amendment(**change))
    task_requests.take(10)
    assert "which the workflow permits no request" in TaskRequest.objects.get().reason
    step.refresh_from_db()
    assert step.process_state == "error"
    asked = []
    permits = replace(registry.workflows["greet"], permit=asked.append)
    monkeypatch.setitem(registry.workflows, "greet", permits)
    TaskRequest.objects.all().delete()
    ask_again(step, amendment=api.Amendment(**change))
    task_requests.take(10)
    step.refresh_from_db()
    assert step.process_state == "pending"
    assert {"request": asked[0].request, "data": asked[0].data} == {
        "request": {},
        "data": {},
    } | change
    assert asked[0].task_data["name"] == "Ada"


def test_refused_request_is_answered_with_the_reason(accepted):
    calls, _ = accepted
    step = in_error(new_task("7"), "rejected")
    asked = ask_again(step, attempt=step.attempt + 1)
    assert task_requests.take(10).done == 1
    assert last_message().kind == "refused"
    assert last_message().detail == {
        "request": str(asked),
        "refusal": Refusal.OTHER_ATTEMPT.name,
    }
    assert not calls
    nothing = ask_undo("no such task")
    task_requests.take(10)
    assert last_message().detail == {"request": str(nothing), "refusal": "NO_SUCH_TASK"}
    assert last_message().reference == "no such task"


def test_application_writes_are_atomic_with_the_action(accepted):
    calls, errors = accepted
    task = new_task("7")
    errors.append(RuntimeError("its table is locked"))
    ask_undo("7")
    assert task_requests.take(10).done == 1
    task.refresh_from_db()
    assert task.state == "pending"
    waiting = TaskRequest.objects.get()
    assert (waiting.done_at, waiting.problem, waiting.tries) == (None, "failing", 1)
    assert task_requests.take(10).done == 0  # not before its time
    errors.clear()
    TaskRequest.objects.update(retry_at=waiting.created_at)
    assert task_requests.take(10).done == 1
    task.refresh_from_db()
    assert task.state == "undone"
    assert len(calls) == 2


def test_request_refused_by_its_application_is_set_aside(accepted):
    _, errors = accepted
    new_task("7")
    errors.append(api.Refused("not my note"))
    ask_undo("7")
    task_requests.take(10)
    assert TaskRequest.objects.get().refused_at is not None
    assert Alert.objects.get(closed_at=None).fingerprint == "request/greet"


def test_requests_about_one_task_stay_in_order(accepted):
    _, errors = accepted
    api.submit("greet", reference="7", data={"name": "Ada"})
    first, second = ask_undo("7"), ask_undo("7")
    other = new_task("8")
    assert task_requests.take(10).done == 0  # "7" is not a task yet
    submission.take(10)
    errors.append(RuntimeError("away"))
    assert task_requests.take(10).done == 1
    ask_undo("8")
    errors.clear()
    assert (
        task_requests.take(10).done == 1
    )  # the other task's: the second of "7" waits for the first
    other.refresh_from_db()
    assert other.state == "undone"
    assert TaskRequest.objects.get(request=second).done_at is None
    TaskRequest.objects.filter(request=first).update(retry_at=other.created_at)
    assert task_requests.take(10).done == 1
    assert task_requests.take(10).done == 1
    assert TaskRequest.objects.get(request=second).refusal == "NOT_UNDOABLE"


def test_keeper_gets_the_progress_with_each_message(accepted):
    task = new_task("7")
    run_to_end(task)
    messages = StatusMessage.objects.filter(reply_to="shop").order_by("id")
    assert [sent.number for sent in messages] == [1, 2, 3]
    assert [sent.progress["state"] for sent in messages] == ["pending", "processing", "processed"]
    first, second = messages[0].progress["steps"]
    # what has not begun is not in a message: its template has no values, and each message would have it
    assert (first["request"], second["request"]) == ({"to": "Ada"}, {})
    known = api.progress("greet", "7")
    sent = api.Progress.from_json(messages[2].progress)
    assert sent == replace(known, data={})
    assert api.Progress.from_json(known.as_json()) == known
    (now,) = task_status.snapshots([task.id], anyway=[task.id])
    assert Task.objects.get().owner_version == now.version
    assert Step.objects.count() == 2


def test_submission_that_becomes_no_task_is_reported(accepted, monkeypatch):
    def refuse(_):
        raise api.Refused("no such product")

    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, record=refuse))
    api.submit("greet", reference="7", data={"name": "Ada"}, reply_to="shop")
    submission.take(10)
    actions.close(actions.DeadLetterFilter(kind="submission"), by="olga", reason="no")
    messages = StatusMessage.objects.order_by("id")
    assert [(sent.reply_to, sent.reference, sent.number, sent.kind) for sent in messages] == [
        ("shop", "7", 0, "set_aside"),
        ("shop", "7", 0, "closed"),
    ]
    assert not messages.filter(task__isnull=False).exists()


def test_request_set_aside_is_a_dead_letter(accepted):
    from orchestration.alerting import alerts
    from orchestration.dead_letters.listing import letters

    _, errors = accepted
    task = new_task("7")
    errors.append(api.Refused("not my note"))
    asked = ask_undo("7")
    task_requests.take(10)
    narrowing = actions.DeadLetterFilter(kind="request")
    assert actions.waiting(10) == 1
    (letter,) = letters(narrowing, personal=True).rows
    assert (letter.subject, letter.reason) == ("7: Undo the task", "not my note")
    assert actions.close(narrowing, by="olga", reason="they changed their mind again") == 1
    assert not Alert.objects.filter(closed_at=None, fingerprint="request/greet").exists()
    assert last_message().detail == {"request": str(asked), "refusal": "CLOSED"}
    assert last_message().task_id == task.id
    errors.clear()
    assert actions.retry(actions.DeadLetterFilter(kind="request", state="closed"), by="olga") == 1
    assert task_requests.take(10).done == 1
    task.refresh_from_db()
    assert task.state == "undone"
    assert alerts.close_recovered() == 0


@pytest.fixture
def set_aside(accepted, monkeypatch):
    """Have the submission "7" set aside, and what its application refuses be taken from now on."""

    def refuse(_):
        raise api.Refused("no such product")

    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, record=refuse))
    api.submit("greet", reference="7", data={"name": "Ada"})
    submission.take(10)
    monkeypatch.setitem(registry.workflows, "greet", greet)
    return Submission.objects.get(refused_at__isnull=False)


def test_request_waits_for_a_submission_that_is_set_aside(set_aside):
    ask_undo("7")
    assert task_requests.take(10).done == 0
    assert TaskRequest.objects.get().done_at is None
    actions.retry(actions.DeadLetterFilter(id=set_aside.id), by="olga")
    assert task_requests.take(10).done == 0  # the submission comes first
    submission.take(10)
    assert task_requests.take(10).done == 1
    assert Task.objects.get().state == "undone"
    assert TaskRequest.objects.get().refusal == ""


def test_request_is_answered_when_its_submission_is_closed(
    set_aside, django_capture_on_commit_callbacks
):
    asked = ask_undo("7")
    assert task_requests.take(10).done == 0
    with django_capture_on_commit_callbacks(execute=True):
        actions.close(actions.DeadLetterFilter(id=set_aside.id), by="olga", reason="no")
    assert queues.connection().llen("rq:queue:submission") == 1
    assert task_requests.take(10).done == 1
    assert last_message().detail == {"request": str(asked), "refusal": "NO_SUCH_TASK"}


@pytest.mark.parametrize(
    "other", [{"reference": "8"}, {"workflow": "party"}], ids=["reference", "workflow"]
)
def test_request_does_not_wait_for_another_submission(set_aside, other):
    Submission.objects.update(**other)
    ask_undo("7")
    assert task_requests.take(10).done == 1
    assert TaskRequest.objects.get().refusal == "NO_SUCH_TASK"


def test_request_does_not_wait_for_another_submission_of_its_reference(accepted):
    task = new_task("7")
    api.submit("greet", reference="7", data={"name": "Bob"})
    submission.take(10)
    assert Submission.objects.get().refused_at is not None  # the task has other content
    ask_undo("7")
    assert task_requests.take(10).done == 1
    task.refresh_from_db()
    assert task.state == "undone"


@pytest.mark.django_db(transaction=True)
def test_request_about_a_locked_task_waits_and_delays_no_other(accepted):
    locked, free = new_task("7"), new_task("8")
    ask_undo("7")
    ask_undo("8")
    with another() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(
            "SELECT 1 FROM orchestration_task WHERE id = %s FOR UPDATE", [str(locked.id)]
        )
        began = time.monotonic()
        assert task_requests.take(10) == (1, 1)  # the other is looked at again soon
        assert time.monotonic() - began < 5  # a session waits 8 s for a lock: this one does not
        cursor.execute("ROLLBACK")
    free.refresh_from_db()
    assert free.state == "undone"
    assert TaskRequest.objects.get(reference="7").tries == 0
    assert task_requests.take(10) == (1, 0)
    locked.refresh_from_db()
    assert locked.state == "undone"


def posted(tasks, *, early=False, by_id=False):
    """Post a report for each of some new tasks, whose steps are awaited or, if `early`, dispatched.

    With `by_id`, it names the service's own id of what it accepted.
    """
    references = [str(uuid4()) for _ in range(tasks)]
    for reference in references:
        new_task(reference)
    requests = claimed()
    if not early:
        accepted = [reply_to(request, "later", result={}) for request in requests]
        replies.record(
            [reply.altered(wait=Accepted(id=reply.task, look=None)) for reply in accepted]
        )
    known = dict(Task.objects.values_list("reference", "id")) if by_id else {}
    for reference in references:
        about = {"of": str(known.get(reference, "")), "actor": "x", "id": uuid4()}
        api.complete("greet", reference, "hello", result={"text": "x"}, **about)
    return references


@pytest.mark.parametrize(("early", "by_id"), [(True, False), (False, False), (False, True)])
def test_reports_cost_as_many_queries_as_one(early, by_id):
    counts = []
    for tasks in (1, 2, 9):  # the first prepares what the others execute
        references = posted(tasks, early=early, by_id=by_id)
        with CaptureQueriesContext(connection) as queries:
            assert task_requests.take(10) == (tasks, 0)
        counts.append(len(queries))
        states = Step.objects.filter(task__reference__in=references, name="hello")
        expected = "processing" if early else "processed"
        assert set(states.values_list("process_state", flat=True)) == {expected}
    assert counts[1] == counts[2]


def test_report_that_cannot_be_recorded_delays_no_other(accepted):
    _, errors = accepted
    first, second = posted(2)
    errors.append(api.Refused("no"))
    assert task_requests.take(10) == (2, 0)
    assert set(TaskRequest.objects.values_list("reference", "reason")) == {
        (first, "no"),
        (second, "no"),
    }
    errors.clear()
    (third,) = posted(1)
    assert task_requests.take(10) == (1, 0)
    assert Step.objects.get(task__reference=third, name="hello").process_state == "processed"
