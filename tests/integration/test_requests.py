"""What applications ask for about their tasks: durable, once, with what they write of it (P18, P27)."""

import time
from dataclasses import replace
from uuid import uuid4

import pytest

from orchestration import api, registry, standing
from orchestration.interface import requests
from orchestration.models import Alert, StatusMessage, Step, Task, TaskRequest
from orchestration.progression import Refusal
from tests.database import another
from tests.engine import in_error, new_task, run_to_end

pytestmark = pytest.mark.django_db


@pytest.fixture
def accepted(monkeypatch):
    """Have "greet" kept by the shop; return what its hook is called with, and what it raises."""
    calls, errors = [], []

    def hook(some):
        calls.extend(some)
        if errors:
            raise errors[0]

    workflow = replace(registry.workflows["greet"], keeper="shop", accepted=hook)
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


def test_an_undo_is_carried_out_and_named(accepted):
    calls, _ = accepted
    task = new_task("7")
    asked = ask_undo("7")
    assert requests.take(10) == 1
    task.refresh_from_db()
    assert task.state == "undone"
    (call,) = calls
    assert (call.reference, call.id, call.what) == ("7", asked, "undo")
    assert last_message().detail == {"request": str(asked)}
    assert last_message().progress["state"] == "undone"
    assert requests.take(10) == 0


def test_the_same_request_twice_is_one_even_after_it_was_carried_out(accepted):
    new_task("7")
    asked = ask_undo("7")
    ask_undo("7", asked)
    assert TaskRequest.objects.count() == 1
    requests.take(10)
    ask_undo("7", asked)
    assert requests.take(10) == 0
    assert not StatusMessage.objects.filter(kind="refused").exists()


def test_a_step_in_error_is_tried_again_with_what_the_application_changes(accepted):
    calls, _ = accepted
    step = in_error(new_task("7"), "rejected")
    asked = ask_again(step, amendment=api.Amendment(request={"to": "Eve"}), note={"card": "other"})
    assert requests.take(10) == 1
    step.refresh_from_db()
    assert (step.process_state, step.request["to"]) == ("pending", "Eve")
    assert calls[0].note == {"card": "other"}
    assert last_message().detail == {"request": str(asked)}
    assert last_message().kind == "resumed"


def test_what_is_refused_is_told_with_the_reason(accepted):
    calls, _ = accepted
    step = in_error(new_task("7"), "rejected")
    asked = ask_again(step, attempt=step.attempt + 1)
    assert requests.take(10) == 1
    assert last_message().kind == "refused"
    assert last_message().detail == {
        "request": str(asked),
        "refusal": Refusal.OTHER_ATTEMPT.name,
    }
    assert not calls
    nothing = ask_undo("no such task")
    requests.take(10)
    assert last_message().detail == {"request": str(nothing), "refusal": "NO_SUCH_TASK"}
    assert last_message().reference == "no such task"


def test_what_the_application_writes_is_committed_with_the_act_or_not_at_all(accepted):
    calls, errors = accepted
    task = new_task("7")
    errors.append(RuntimeError("its table is locked"))
    ask_undo("7")
    assert requests.take(10) == 1
    task.refresh_from_db()
    assert task.state == "pending"
    waiting = TaskRequest.objects.get()
    assert (waiting.done_at, waiting.problem, waiting.tries) == (None, "failing", 1)
    assert requests.take(10) == 0  # not before its time
    errors.clear()
    TaskRequest.objects.update(retry_at=waiting.created_at)
    assert requests.take(10) == 1
    task.refresh_from_db()
    assert task.state == "undone"
    assert len(calls) == 2


def test_one_that_its_application_refuses_is_set_aside_with_an_alert(accepted):
    _, errors = accepted
    new_task("7")
    errors.append(api.Refused("this is no note of mine"))
    ask_undo("7")
    requests.take(10)
    assert TaskRequest.objects.get().refused_at is not None
    assert Alert.objects.get(closed_at=None).fingerprint == "request/greet"


def test_requests_about_one_task_come_in_order_and_after_its_submission(accepted):
    from orchestration import submission

    _, errors = accepted
    api.submit("greet", reference="7", data={"name": "Ada"})
    first, second = ask_undo("7"), ask_undo("7")
    other = new_task("8")
    assert requests.take(10) == 0  # "7" is no task yet
    submission.take(10)
    errors.append(RuntimeError("away"))
    assert requests.take(10) == 1
    ask_undo("8")
    errors.clear()
    assert requests.take(10) == 1  # the other task's: the second of "7" waits for the first
    other.refresh_from_db()
    assert other.state == "undone"
    assert TaskRequest.objects.get(request=second).done_at is None
    TaskRequest.objects.filter(request=first).update(retry_at=other.created_at)
    assert requests.take(10) == 1
    assert requests.take(10) == 1
    assert TaskRequest.objects.get(request=second).refusal == "NOT_UNDOABLE"


def test_a_keeper_has_the_progress_with_each_message(accepted):
    task = new_task("7")
    run_to_end(task)
    told = StatusMessage.objects.filter(reply_to="shop").order_by("id")
    assert [one.number for one in told] == [1, 2, 3]
    assert [one.progress["state"] for one in told] == ["pending", "processing", "processed"]
    known = api.progress("greet", "7")
    sent = api.Progress.from_json(told[2].progress)
    assert sent == replace(known, data={})
    assert api.Progress.from_json(known.as_json()) == known
    (now,) = standing.snapshots([task.id], anyway=[task.id])
    assert Task.objects.get().told == now.version
    assert Step.objects.count() == 2


def test_what_becomes_of_a_submission_that_is_no_task_is_told(accepted, monkeypatch):
    from orchestration import requeue, submission

    def refuse(_):
        raise api.Refused("no such product")

    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, record=refuse))
    api.submit("greet", reference="7", data={"name": "Ada"}, reply_to="shop")
    submission.take(10)
    requeue.close(requeue.Wanted(kind="submission"), by="olga", reason="no")
    told = StatusMessage.objects.order_by("id")
    assert [(one.reply_to, one.reference, one.number, one.kind) for one in told] == [
        ("shop", "7", 0, "set_aside"),
        ("shop", "7", 0, "closed"),
    ]
    assert not told.filter(task__isnull=False).exists()


def test_a_request_set_aside_is_a_dead_letter_that_people_retry_or_close(accepted):
    from orchestration import alerts, requeue
    from orchestration.queries.dead_letters import letters

    _, errors = accepted
    task = new_task("7")
    errors.append(api.Refused("this is no note of mine"))
    asked = ask_undo("7")
    requests.take(10)
    wanted = requeue.Wanted(kind="request")
    assert requeue.waiting(10) == 1
    (letter,) = letters(wanted, personal=True).rows
    assert (letter.subject, letter.reason) == ("7: Undo the task", "this is no note of mine")
    assert requeue.close(wanted, by="olga", reason="they changed their mind again") == 1
    assert not Alert.objects.filter(closed_at=None, fingerprint="request/greet").exists()
    assert last_message().detail == {"request": str(asked), "refusal": "CLOSED"}
    assert last_message().task_id == task.id
    errors.clear()
    assert requeue.retry(requeue.Wanted(kind="request", state="closed"), by="olga") == 1
    assert requests.take(10) == 1
    task.refresh_from_db()
    assert task.state == "undone"
    assert alerts.close_settled() == 0


@pytest.mark.django_db(transaction=True)
def test_one_about_a_locked_task_waits_and_keeps_no_other_waiting(accepted):
    locked, free = new_task("7"), new_task("8")
    ask_undo("7")
    ask_undo("8")
    with another() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(
            "SELECT 1 FROM orchestration_task WHERE id = %s FOR UPDATE", [str(locked.id)]
        )
        began = time.monotonic()
        assert requests.take(10) == 1
        assert time.monotonic() - began < 1  # it waits for no lock
        cursor.execute("ROLLBACK")
    free.refresh_from_db()
    assert free.state == "undone"
    assert TaskRequest.objects.get(reference="7").tries == 0
    assert requests.take(10) == 1
    locked.refresh_from_db()
    assert locked.state == "undone"
