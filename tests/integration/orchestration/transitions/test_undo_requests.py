"""The supervisor requests an undo; a scheduler begins it once, even if a process dies in between."""

from datetime import timedelta

import pytest

from orchestration import registry, supervisor
from orchestration.messaging import queues
from orchestration.models import Alert, Event, Policy, Step, Task, UndoRequest
from orchestration.models.fields import DatabaseNow
from orchestration.supervision.duties import due
from orchestration.transitions import requested_undos
from orchestration.transitions.holds import hold, release
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit
from orchestration.transitions.undo import undo
from orchestration.workers import jobs, scheduler_duties
from tests.support.engine import claimed, new_task, reply_to, run_to_end, staff, step_of, sweep
from tests.support.operators import LEADER
from tests.support.together import at_once
from tests.support.unmended import PARTY, answer, refused

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _party(monkeypatch):
    monkeypatch.setitem(registry.workflows, "party", PARTY)
    Policy.objects.filter(agent="greeter").update(
        past_threshold="undo", failure_threshold=1, on_rejection="wait", resolve_within=60
    )
    staff()


def failed(outcome="unknown"):
    """Return a task whose second step failed past its threshold, once a supervisor has seen it."""
    task = new_task()
    record([reply_to(request) for request in claimed()])
    record([reply_to(request, outcome) for request in claimed()])
    assert supervisor.sweep(LEADER)["to undo"] == 1
    return task


def state(task):
    return Task.objects.get(id=task.id).state


def undos(task):
    return Event.objects.filter(task=task, kind="undo").count()


def test_supervisor_requests_and_scheduler_begins_the_undo():
    task = failed()
    assert state(task) == "processing"  # nothing is undone, or planned
    assert not Step.objects.filter(task=task, direction="undo").exists()
    asked = UndoRequest.objects.get()
    assert (asked.task_id, asked.step.name, asked.requested_by) == (
        task.id, "again", "supervisor-1 (epoch 3)"
    )  # fmt: skip
    assert Event.objects.get(task=task, kind="undo_asked").reason == asked.reason
    scheduler_duties.run()
    assert state(task) == "undoing"
    assert not UndoRequest.objects.exists()
    assert Event.objects.get(task=task, kind="undo").actor == "supervisor-1 (epoch 3)"


def test_step_with_a_requested_undo_is_not_claimed_or_retried():
    task = failed()
    before = step_of(task, "again")
    assert claimed() == []
    for _ in range(2):
        done = supervisor.sweep(LEADER)
        assert str(done) == ""
    after = step_of(task, "again")
    assert (after.process_state, after.failure_count) == ("pending", 1)
    assert (after.failure_count, after.run_after) == (before.failure_count, before.run_after)
    assert UndoRequest.objects.count() == 1


def test_requested_undo_is_rung_for_until_a_scheduler_comes():
    task = failed()
    queues.connection().flushdb()  # the doorbell is lost
    assert due(supervisor.DUTIES)
    supervisor.sweep(LEADER)
    assert set(queues.take(queues.SCHEDULER, 9)) == {queues.LOOK}
    jobs.stop()  # a scheduler that takes one turn
    try:
        jobs.schedule()
    finally:
        jobs._stopping.clear()
    assert state(task) == "undoing"
    assert undos(task) == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_schedulers_begin_an_undo_once():
    tasks = [failed() for _ in range(5)]
    at_once(dict.fromkeys(range(4), scheduler_duties.run))
    assert [undos(task) for task in tasks] == [1] * 5
    assert not UndoRequest.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_late_scheduler_finds_the_request_gone():
    """The second has read who is to be undone before the first began; the request is its guard."""
    task = failed()
    tasks = requested_undos.requested_tasks(9)
    run = requested_undos.begin_requested
    assert run(tasks).handled == 1
    assert run(tasks).handled == 0
    assert undos(task) == 1


def test_undo_settles_a_doubt_under_the_same_key():
    task = failed()
    key = step_of(task, "again").key
    scheduler_duties.run()
    (request,) = claimed()
    assert (request.mode, request.key) == ("settle", key)


def test_requested_undo_of_an_irreversible_step_is_an_error():
    task = failed()
    Step.objects.filter(task=task, name="hello").update(irreversible="they heard it")
    scheduler_duties.run()
    assert state(task) == "error"
    step = step_of(task, "again")
    assert (step.process_state, step.failure_count) == ("error", 1)
    assert "(failed 1 times)" in step.error_message
    assert Alert.objects.get(closed_at=None).id == step.alert_id
    assert Event.objects.filter(task=task, kind="no_undo").count() == 1
    assert not UndoRequest.objects.exists()
    scheduler_duties.run()
    assert sweep(LEADER)["to undo"] == 0  # an operator decides


@pytest.mark.usefixtures("run")  # time stands still: what the hold lasts counts
@pytest.mark.parametrize("mend", [False, True])
def test_hold_delays_a_requested_undo_to_its_end(mend):
    if mend:
        task, _ = refused()
        Step.objects.filter(resolve_by__isnull=False).update(resolve_by=DatabaseNow())
        assert supervisor.sweep(LEADER)["to undo"] == 1
    else:
        task = failed()
    held = hold(task=task.id, actor="olga", reason="wait")
    scheduler_duties.run()
    assert state(task) == "error"
    assert sweep(LEADER)["to undo"] == 0
    release(held.id, actor="olga", reason="go on")
    Step.objects.filter(resolve_by__isnull=False).update(resolve_by=DatabaseNow())
    assert sweep(LEADER)["to undo"] == 1
    assert state(task) == "undoing"


def test_manual_undo_precedes_the_requested_one():
    task = failed()
    assert undo(task.id, actor="olga", reason="enough") is None
    scheduler_duties.run()
    assert undos(task) == 1
    assert not UndoRequest.objects.exists()


def test_corrected_step_cancels_the_requested_undo():
    from orchestration.transitions.resubmit import resubmit

    task, step = refused()
    Step.objects.filter(id=step.id).update(resolve_by=DatabaseNow())
    assert supervisor.sweep(LEADER)["to undo"] == 1
    assert resubmit(step.id, attempt=1, actor="ada", reason="mended") is None
    scheduler_duties.run()
    assert state(task) == "processing"
    assert not UndoRequest.objects.exists()


def test_agents_and_application_are_notified():
    task = new_task(reply_to="shop")
    record([reply_to(request) for request in claimed()])
    record([reply_to(request, "transient") for request in claimed()])
    supervisor.sweep(LEADER)
    bell = queues.flag("status.shop")
    queues.connection().delete(bell)
    assert scheduler_duties.run().more == {"greeter"}
    assert queues.connection().exists(bell)
    run_to_end(task)
    assert state(task) == "undone"


def test_requested_undo_that_is_not_begun_raises_an_alert():
    task = failed()
    UndoRequest.objects.update(requested_at=DatabaseNow() - timedelta(hours=1))
    from orchestration.cluster.debounce import Debounce
    from orchestration.monitoring import monitors

    monitors.look(Debounce())
    alert = Alert.objects.get(fingerprint=f"system/undo_stuck/{task.workflow}")
    assert alert.closed_at is None


def requested():
    """Return a task whose second step was not mended in time, and that step: its undo is requested."""
    task, step = refused()
    Step.objects.filter(id=step.id).update(resolve_by=DatabaseNow() - timedelta(seconds=1))
    assert supervisor.sweep(LEADER)["to undo"] == 1
    return task, step


def mend(step):
    """Try a refused step again, before a scheduler has begun the undo of its task."""
    assert resubmit(step.id, attempt=1, actor="ada", reason="another card") is None


def leave_an_old_request(task, step, attempt):
    """Leave the request of an earlier attempt, as a session may that was not seen by the resubmit."""
    asked = {"attempt": attempt, "unmended": True, "requested_by": "s", "reason": "too late"}
    UndoRequest.objects.update_or_create(step=step, task=task, defaults=asked)


def test_resubmit_takes_the_request_back():
    task, step = requested()
    mend(step)
    assert not UndoRequest.objects.exists()
    answer("rejected")
    scheduler_duties.run()
    assert state(task) == "error"
    assert Step.objects.get(id=step.id).resolve_by > Step.objects.get(id=step.id).ended_at


def test_request_for_an_earlier_attempt_undoes_nothing():
    task, step = requested()
    mend(step)
    answer("rejected")
    leave_an_old_request(task, step, attempt=1)
    scheduler_duties.run()
    assert state(task) == "error"
    assert not UndoRequest.objects.exists()


def test_request_of_code_that_names_no_attempt_is_heard():
    """A supervisor of the release before writes them during an update."""
    task, step = refused()
    leave_an_old_request(task, step, attempt=None)
    scheduler_duties.run()
    assert state(task) == "undoing"


def test_newer_request_takes_the_place_of_an_older_one():
    task, step = requested()
    mend(step)
    leave_an_old_request(task, step, attempt=1)
    answer("unknown")
    assert supervisor.sweep(LEADER)["to undo"] == 1
    asked = UndoRequest.objects.get()
    assert (asked.attempt, asked.unmended) == (2, False)
    assert "failed 1 times" in asked.reason
    scheduler_duties.run()
    assert state(task) == "undoing"
    assert Step.objects.get(id=step.id).run_after is None
