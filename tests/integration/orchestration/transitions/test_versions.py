"""A step changes after a write was decided, by a session that keeps to no lock: the write does not land."""

import re
from datetime import timedelta

import pytest
from django.db import connection, transaction

from orchestration import registry, scheduler, supervisor
from orchestration.database.sql import ConcurrentUpdate, is_busy
from orchestration.decisions.amendment import Amendment
from orchestration.models import Event, Policy, Step, Task, UndoRequest
from orchestration.models.fields import DatabaseNow
from orchestration.supervision.failures import recover
from orchestration.supervision.losses import Losses
from orchestration.transitions.failures import failed_tasks
from orchestration.transitions.late_effects import detect_late_effects
from orchestration.transitions.locked_task import lock
from orchestration.transitions.priority import prioritize
from orchestration.transitions.replies import Recorded, decide, record
from orchestration.transitions.requested_undos import begin_requested
from orchestration.transitions.restored import doubt
from orchestration.transitions.resubmit import done_by_hand, resubmit, resubmit_all
from orchestration.transitions.settle import finish, release_ready
from orchestration.transitions.undo import undo
from orchestration.transitions.unmended import request_undo_of_unmended
from tests.support.database import another
from tests.support.engine import claimed, new_task, reply_to, staff, states, step_of
from tests.support.operators import LEADER
from tests.support.unmended import PARTY, refused

pytestmark = pytest.mark.django_db(transaction=True)

OVERTAKE = """
SET session_replication_role = replica;
UPDATE orchestration_step SET {} WHERE id = %s
"""
WRITE = re.compile(r"UPDATE \"?orchestration_(step|task)\b|EXECUTE sas_update_(step|task)_")
BY = {"actor": "ada", "reason": "why"}


@pytest.fixture(autouse=True)
def _party(monkeypatch):
    monkeypatch.setitem(registry.workflows, "party", PARTY)
    Policy.objects.filter(agent="greeter").update(on_rejection="wait", resolve_within=60)
    staff()


def overtaken(step, act, change="attempt = attempt + 1"):
    """Act; before its first write another session changes the step. Return what was raised."""
    done = []

    def race(execute, statement, *rest):
        if WRITE.search(str(statement)) and not done:
            with another() as cursor:
                cursor.execute(OVERTAKE.format(change), [step.id])
            done.append(step.id)
        return execute(statement, *rest)

    with pytest.raises(ConcurrentUpdate) as raised, connection.execute_wrapper(race):
        act()
    assert done
    return raised.value


def due(step):
    """Return a time by which a step in error was not mended."""
    Step.objects.filter(id=step.id).update(resolve_by=DatabaseNow() - timedelta(seconds=5))
    step.refresh_from_db()
    return step.resolve_by + timedelta(seconds=4)


def asked_for(step):
    """Have a sweep request the undo of a step's task, for a step that is held as it begins."""
    request_undo_of_unmended([step.task_id], by="supervisor-1", now=due(step))


IN_ERROR = {
    "resubmit": lambda step: resubmit(step.id, attempt=1, **BY),
    "resubmit of many": lambda step: resubmit_all({step.id: 1}, operation=None, **BY),
    "with another input": lambda step: resubmit(
        step.id, attempt=1, amendment=Amendment(data={"price": 7}), **BY
    ),
    "done by hand": lambda step: done_by_hand(step.id, attempt=1, result={"id": "g"}, **BY),
    "undo": lambda step: undo(step.task_id, **BY),
    "priority": lambda step: prioritize(step.task_id, 5, **BY),
}


def rows():
    """Return all that these writes change, but for the versions of the step that was overtaken."""
    steps = Step.objects.order_by("id").values_list(
        "id", "process_state", "request", "result", "priority", "turn", "loaded", "in_doubt"
    )
    tasks = Task.objects.values_list("id", "state", "data", "priority", "undo_at")
    return list(steps), list(tasks), Event.objects.count()


@pytest.mark.parametrize("change", ["attempt = attempt + 1", "generation = generation + 1"])
@pytest.mark.parametrize("act", IN_ERROR.values(), ids=IN_ERROR)
def test_act_on_a_step_in_error_that_has_changed_leaves_no_trace(act, change):
    _, step = refused()
    before = rows()
    assert is_busy(overtaken(step, lambda: act(step), change))
    assert rows() == before


def test_request_for_the_undo_of_a_step_that_has_changed_leaves_no_trace():
    _, step = refused()
    now = due(step)
    before = rows()
    overtaken(step, lambda: request_undo_of_unmended([step.task_id], by="supervisor-1", now=now))
    assert rows() == before
    assert not UndoRequest.objects.exists()


def test_begun_undo_of_a_step_that_has_changed_leaves_no_trace():
    _, step = refused()
    asked_for(step)
    before = rows()
    overtaken(step, lambda: begin_requested([step.task_id]))
    assert rows() == before


@pytest.mark.parametrize("outcome", ["transient", "unknown", "rejected"])
def test_failure_of_a_step_that_has_changed_is_not_counted(outcome):
    Policy.objects.update(failure_threshold=1, past_threshold="undo")
    task = new_task()
    (request,) = claimed()
    if outcome == "rejected":
        overtaken(step_of(task), lambda: record([reply_to(request, outcome)]))
    else:
        record([reply_to(request, outcome)])
        now = Step.objects.values_list("complete_by", flat=True).get(id=request.step)
        now += timedelta(seconds=1)
        assert failed_tasks(5, now=now) == [task.id]

        def count():
            recover([task.id], by="s", now=now, losses=Losses(), chance=lambda: 0.5)

        overtaken(step_of(task), count)
    assert states(task) == {"hello": "processing", "again": "waiting"}
    assert not Event.objects.exists()


def test_silence_of_a_step_that_has_changed_is_not_counted():
    task = new_task()
    (request,) = claimed()
    Step.objects.filter(id=request.step).update(complete_by=DatabaseNow())
    now = step_of(task).complete_by + timedelta(seconds=1)

    def count():
        recover([task.id], by="s", now=now, losses=Losses(), chance=lambda: 0.5)

    overtaken(step_of(task), count)
    step = step_of(task)
    assert (step.in_doubt, step.locked_by, step.attempts.count()) == (False, "scheduler-1", 0)


def test_late_effect_on_a_step_that_has_changed():
    task = new_task()
    (request,) = claimed()
    record([reply_to(request, "rejected")])

    @transaction.atomic
    def late():
        changes = lock([task.id])
        detect_late_effects([reply_to(request)], changes, by="s")
        finish(changes.values(), by="s")

    overtaken(step_of(task), late)
    assert not step_of(task).in_doubt


def test_step_that_was_released_meanwhile_is_not_released():
    """What one session found ready another has claimed, and more."""
    task = new_task()
    (request,) = claimed()
    recorded = Recorded()
    decide([reply_to(request)], recorded)
    recorded.write()
    step = step_of(task, "again")
    released = "process_state = 'pending', pending_since = clock_timestamp()"
    with another() as cursor:
        cursor.execute(OVERTAKE.format(released), [step.id])
    with pytest.raises(ConcurrentUpdate):
        release_ready(recorded.ready)


def test_turn_that_was_overtaken_is_taken_anew():
    """The claim of what it has just released finds another version: nothing was committed, nothing sent."""
    task = new_task()
    (request,) = claimed()
    step = step_of(task, "again")
    done = []

    def race(execute, statement, *rest):
        if "EXECUTE sas_update_step_" in statement and "scheduler-1" in str(rest) and not done:
            with another() as cursor:
                cursor.execute(OVERTAKE.format("attempt = 3"), [step.id])
            done.append(step.id)
        return execute(statement, *rest)

    with connection.execute_wrapper(race):
        scheduler.run_once("scheduler-1", [reply_to(request).dump()], [])
    assert done
    step.refresh_from_db()
    assert (step.process_state, step.attempt) == ("processing", 4)


def test_doubt_after_a_restore_counts_for_the_version_that_was_read():
    _, step = refused()
    restored_to = step.ended_at
    overtaken(step, lambda: doubt({step.id: 2}, restored_to, **BY), "generation = 5")
    step.refresh_from_db()
    assert (step.generation, step.in_doubt) == (5, False)


def test_sweep_passes_over_what_was_overtaken_and_finds_it_again():
    task = new_task()
    (request,) = claimed()
    record([reply_to(request, "transient")])
    done = []

    def race(execute, statement, *rest):
        if WRITE.search(str(statement)) and not done:
            with another() as cursor:
                cursor.execute(OVERTAKE.format("generation = 2"), [request.step])
            done.append(request.step)
        return execute(statement, *rest)

    with connection.execute_wrapper(race):
        supervisor.sweep(LEADER)
    assert done
    assert step_of(task).process_state == "processing"
    supervisor.sweep(LEADER)
    assert step_of(task).process_state == "pending"
    assert step_of(task).generation == 2
