"""An idle sweep asks one question, which covers all that a duty would act on."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration import supervisor
from orchestration.cluster.duty import Duty, Sweep
from orchestration.cluster.leader_memory import Memory
from orchestration.housekeeping import housekeeper
from orchestration.messaging import queues
from orchestration.models import (
    DeadLetter,
    Gate,
    StatusMessage,
    Step,
    Submission,
    Task,
    TaskRequest,
    Worker,
)
from orchestration.models.fields import DatabaseNow
from orchestration.states import GateState
from orchestration.supervision import doorbells
from orchestration.supervision.duties import due
from orchestration.transitions.holds import hold, release
from orchestration.transitions.replies import record
from tests.support.engine import (
    claimed,
    in_error,
    new_task,
    postpone_retries,
    reply_to,
    rested_memory,
    run_to_end,
    staff,
    sweep,
)
from tests.support.operations import drafted, running
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db
AGO = timedelta(seconds=60)


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()


def anything():
    """Return whether a supervisor or a housekeeper has anything to do."""
    return due(supervisor.DUTIES) or due(housekeeper.all_duties())


@pytest.mark.parametrize("process", [supervisor, housekeeper])
def test_idle_sweep_is_one_statement(process):
    done = new_task()
    run_to_end(done)
    sweep(LEADER)
    with CaptureQueriesContext(connection) as asked:
        assert str(process.sweep(LEADER, rested_memory())) == ""
    assert len(asked) == 1


def test_duty_runs_at_once_and_then_every_few_seconds(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("orchestration.database.clock.steady", lambda: now[0])
    memory = Memory()
    duty = Duty(name="count", run=print, every=5.0)
    runs = []
    for now[0] in (100.0, 101.0, 104.9, 105.0, 106.0):
        runs.append(bool(memory.elapsed([duty])))
    assert runs == [True, False, False, True, False]


def at_work():
    new_task()
    claimed()


def ready():
    new_task()


def a_step_to_compute():
    new_task(workflow="invite")


def failed():
    new_task()
    (request,) = claimed()
    record([reply_to(request, "transient")])


def a_retry_whose_time_has_come():
    failed()
    sweep(LEADER)
    Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow() - AGO)


def not_mended_in_time():
    step = in_error()
    settle()
    Step.objects.filter(id=step.id).update(resolve_by=DatabaseNow() - AGO)


def a_step_of_a_hold_that_has_ended():
    held = hold(workflow="greet", step="hello", actor="olga", reason="they move")
    new_task()
    claimed()  # parks it
    release(held.id, actor="olga", reason="they have moved")
    assert Step.objects.filter(held_by__until__isnull=False).exists()


def a_gate_that_ramps_up_for_nothing():
    Gate.objects.filter(agent="greeter").update(state=GateState.RECOVERING, allowance=2)


def an_agent_without_a_worker():
    Worker.objects.filter(queue="greeter").delete()


def an_operation_that_runs():
    running([in_error().task])


def a_tally():
    in_error()


def a_submission_that_lies():
    Submission.objects.create(
        workflow="greet", reference="1", data={}, created_at=DatabaseNow() - AGO
    )


def a_submission_whose_retry_has_come():
    Submission.objects.create(
        workflow="greet", reference="1", data={}, problem="failing", retry_at=DatabaseNow()
    )


def a_request_that_lies(workflow="greet", reference="none"):
    TaskRequest.objects.create(
        request=uuid4(), workflow=workflow, reference=reference, what="undo", actor="customer",
        because="b", created_at=DatabaseNow() - AGO,
    )  # fmt: skip


def a_status_message_that_lies():
    task = new_task(reply_to="shop")
    run_to_end(task)
    StatusMessage.objects.filter(task=task).update(created_at=DatabaseNow() - AGO)


def a_dead_letter_whose_time_has_come():
    DeadLetter.objects.create(queue="scheduler", body="{}", tries=1, retry_at=DatabaseNow() - AGO)


def settle():
    """Have what happened so far dealt with."""
    sweep(LEADER)


@pytest.mark.parametrize(
    "happen",
    [
        at_work,
        ready,
        a_step_to_compute,
        failed,
        a_retry_whose_time_has_come,
        not_mended_in_time,
        a_step_of_a_hold_that_has_ended,
        a_gate_that_ramps_up_for_nothing,
        an_agent_without_a_worker,
        an_operation_that_runs,
        a_tally,
        a_submission_that_lies,
        a_submission_whose_retry_has_come,
        a_request_that_lies,
        a_status_message_that_lies,
        a_dead_letter_whose_time_has_come,
    ],
)
def test_it_is_due(happen):
    assert not anything()
    happen()
    assert anything()


def a_retry_that_waits():
    postpone_retries()
    failed()
    settle()


def an_error_that_waits_for_an_operator():
    in_error()
    settle()


def a_step_in_a_hold():
    hold(agent="greeter", actor="olga", reason="they move")
    new_task()
    claimed()
    settle()


def a_step_of_a_workflow_in_a_hold():
    hold(workflow="greet", step="hello", actor="olga", reason="they move")
    new_task()
    claimed()
    settle()


def dead_letters_that_wait():
    an_end()
    hence = DatabaseNow() + AGO
    DeadLetter.objects.create(queue="scheduler", body="{}", tries=1, retry_at=hence)
    DeadLetter.objects.create(queue="scheduler", body="{}", tries=4)


def requests_that_wait_for_a_submission_set_aside():
    run_to_end(new_task())
    for reference in ("fresh", "again"):
        Submission.objects.create(
            workflow="greet", reference=reference, data={}, reason="no", refused_at=DatabaseNow()
        )
        a_request_that_lies(reference=reference)
    TaskRequest.objects.filter(reference="again").update(retry_at=DatabaseNow() - AGO)


def a_submission_and_a_status_message_that_failed():
    submission = {"workflow": "greet", "data": {}, "created_at": DatabaseNow() - AGO}
    Submission.objects.create(
        **submission, reference="1", problem="failing", retry_at=DatabaseNow() + AGO
    )
    Submission.objects.create(**submission, reference="2", refused_at=DatabaseNow())
    a_status_message_that_lies()
    StatusMessage.objects.update(send_after=DatabaseNow() + AGO, reason="no")
    settle()


def a_dry_run():
    drafted([in_error().task])
    settle()


def an_end():
    run_to_end(new_task())


@pytest.mark.parametrize(
    "happen",
    [
        a_retry_that_waits,
        an_error_that_waits_for_an_operator,
        a_step_in_a_hold,
        a_step_of_a_workflow_in_a_hold,
        dead_letters_that_wait,
        requests_that_wait_for_a_submission_set_aside,
        a_submission_and_a_status_message_that_failed,
        a_dry_run,
        an_end,
    ],
)
def test_steps_that_are_not_due_cost_no_statement(happen):
    happen()
    assert not anything()
    assert Task.objects.exists()


def test_scheduler_is_rung_for_a_local_step():
    a_step_to_compute()
    assert queues.connection().llen("rq:queue:scheduler") == 0
    doorbells.ring(Sweep(leadership=LEADER))
    assert queues.connection().llen("rq:queue:scheduler") == 1
