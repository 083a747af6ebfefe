"""A stranger's session holds a lock on one row: what needs that row waits, and nothing else does."""

import threading
import time
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import Error, connection

from drill.waiting import wait_for
from orchestration import conf, registry, scheduler, supervisor
from orchestration.cluster import leader_election
from orchestration.cluster.leader_memory import Memory
from orchestration.dead_letters import capture
from orchestration.messaging import queues
from orchestration.models import (
    Alert,
    Attempt,
    DeadLetter,
    Incident,
    Lease,
    Policy,
    Step,
    Task,
    Wait,
)
from orchestration.models.fields import DatabaseNow
from orchestration.monitoring import monitors, sessions
from orchestration.transitions import gates
from orchestration.transitions.claim import claim
from orchestration.transitions.replies import record
from orchestration.transitions.undo import undo
from orchestration.workers import scheduler_duties
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.database import another
from tests.support.engine import (
    claimed,
    in_error,
    new_task,
    postpone_retries,
    reply_to,
    staff,
    states,
    step_of,
    sweep,
)
from tests.support.operations import advance, running
from tests.support.operations import states as items
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db(transaction=True)
SHORT = 3  # seconds: far below the 8 s for which a session waits for a lock


@pytest.fixture(autouse=True)
def _ready():
    staff()
    Policy.objects.update(window=1000, time_allowed=3600)
    yield
    gates._contested.clear()
    scheduler._paused.clear()


@contextmanager
def held(table, which, *values):
    """Have a stranger hold the locks of some rows of a table."""
    with another() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT 1 FROM orchestration_{table} WHERE {which} FOR UPDATE", values)
        assert cursor.rowcount
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


@contextmanager
def soon(seconds=SHORT):
    """Fail if the block takes longer than a few short waits for a lock."""
    started = time.monotonic()
    yield
    took = time.monotonic() - started
    assert took < seconds, f"it took {took:.1f} s"


def turn(replies=(), look_at=("greeter",)):
    return scheduler.run_once("scheduler-1", [reply.dump() for reply in replies], look_at)


def inbox():
    return [message for message in queues.take(queues.SCHEDULER, 500) if message != queues.LOOK]


def names(tasks):
    return "id = ANY(%s::uuid[])", [str(task.id) for task in tasks]


class TestPendingTasks:
    def test_a_locked_one_waits_and_the_others_are_claimed(self):
        first, second = new_task(), new_task()
        with held("task", "id = %s", str(first.id)), soon():
            turn()
            assert [states(task)["hello"] for task in (first, second)] == ["pending", "processing"]
        assert [Task.objects.get(id=task.id).state for task in (first, second)] == [
            "pending", "processing",
        ]  # fmt: skip
        turn()
        assert states(first)["hello"] == "processing"

    def test_a_whole_batch_of_locked_ones_at_the_head_does_not_starve_the_rest(self, monkeypatch):
        monkeypatch.setattr(conf, "BATCH_SIZE", 5)
        head = [new_task() for _ in range(10)]
        tail = [new_task() for _ in range(5)]
        with held("task", *names(head)), soon():
            assert turn().more == {"greeter"}
            assert {states(task)["hello"] for task in tail} == {"processing"}

    def test_two_who_claim_steps_of_one_task_both_get_theirs(self):
        task = new_task()
        Step.objects.filter(task=task).update(process_state="pending", pending_since=DatabaseNow())
        with held("task", "id = %s", str(task.id)):
            assert claim(["greeter"], "scheduler-2").requests == {}
        assert len(claim(["greeter"], "scheduler-2").requests["greeter"]) == 2


class TestTasksInFlight:
    def test_the_replies_of_a_locked_one_wait_and_the_others_are_recorded(self):
        locked, *others = [new_task() for _ in range(5)]
        replies = [reply_to(request) for request in claimed()]
        with held("task", "id = %s", str(locked.id)), soon():
            turn(replies)
            assert states(locked)["hello"] == "processing"
            assert {states(task)["hello"] for task in others} == {"processed"}
            assert not Attempt.objects.filter(step__task=locked).exists()
        turn_of_what_came_back()
        assert states(locked)["hello"] == "processed"
        assert Attempt.objects.filter(step__task=locked).count() == 1

    def test_a_long_lock_makes_no_dead_letter_of_a_reply_and_no_busy_loop(self):
        task = new_task()
        (request,) = claimed()
        with held("task", "id = %s", str(task.id)):
            messages = [reply_to(request).dump()]
            for _ in range(conf.LOCKED_IMMEDIATE_RETURNS):
                scheduler.run_once("scheduler-1", messages, ())
                messages = inbox()
                assert len(messages) == 1
            waits = []
            for _ in range(9):
                scheduler.run_once("scheduler-1", messages, ())
                assert not inbox()
                letter = DeadLetter.objects.get()
                waits.append(round((letter.retry_at - letter.created_at).total_seconds(), 1))
                messages = [due_now()]
        assert waits == [0.5, 1, 2, 4, 8, 8, 8, 8, 8]
        assert not Alert.objects.exists()
        scheduler.run_once("scheduler-1", messages, ())
        assert states(task)["hello"] == "processed"

    def test_locked_step_is_left_out_after_its_batch_failed_by_it(self):
        locked, *others = [new_task() for _ in range(6)]
        replies = [reply_to(request) for request in claimed()]
        with held("step", "id = %s", step_of(locked).id), soon():
            turn(replies)
            assert {states(task)["hello"] for task in others} == {"processed"}
        turn_of_what_came_back()
        assert states(locked)["hello"] == "processed"

    def test_a_reply_to_no_task_is_refused_as_ever(self):
        new_task()
        (request,) = claimed()
        stranger = "00000000-0000-7000-8000-000000000000"
        assert [why.value for _, why in record([reply_to(request, task=stranger)]).refused] == [
            "the step does not exist"
        ]

    def test_its_attempt_does_not_expire_while_the_reply_waits(self):
        task = new_task()
        (request,) = claimed()
        with held("task", "id = %s", str(task.id)):
            come_back(request, conf.LOCKED_IMMEDIATE_RETURNS + 1)
            expire(request)
            assert sweep(LEADER)["retried"] == 0  # the task is locked
        assert sweep(LEADER)["retried"] == 0  # its reply is to come
        scheduler.run_once("scheduler-1", [due_now()], ())
        assert states(task)["hello"] == "processed"
        assert step_of(task).failure_count == 0

    def test_should_it_expire_first_it_is_tried_under_the_same_key(self):
        postpone_retries()
        task = new_task()
        (request,) = claimed()
        with held("task", "id = %s", str(task.id)):
            turn([reply_to(request)])
        expire(request)
        assert sweep(LEADER)["retried"] == 1
        turn_of_what_came_back()  # the fence refuses it
        Step.objects.filter(id=request.step).update(run_after=None)
        (again,) = claimed()
        assert (again.key, again.in_doubt) == (request.key, True)

    def test_an_attempt_whose_reply_waits_takes_no_place(self):
        Policy.objects.filter(agent="greeter").update(window=1)
        task, other = new_task(), new_task()
        (request,) = claimed()
        with held("task", "id = %s", str(task.id)):
            messages = come_back(request, conf.LOCKED_IMMEDIATE_RETURNS)
            assert claimed() == []
            scheduler.run_once("scheduler-1", messages, ())
            assert [request.task for request in claimed()] == [other.id]

    @pytest.mark.parametrize(("window", "isolated"), [(1, False), (1000, True)])
    def test_attempts_past_their_deadline_take_no_place(self, window, isolated):
        Policy.objects.filter(agent="greeter").update(window=window)
        task, other = new_task(), new_task()
        Step.objects.filter(name="hello").update(isolated=isolated)
        (request,) = claimed()
        with held("task", "id = %s", str(task.id)):
            assert claimed() == []
            expire(request)
            assert [claim.task for claim in claimed()] == [other.id]


def come_back(request, times):
    """Have the reply to a request taken this often; return what is in the inbox then."""
    messages = [reply_to(request).dump()]
    for _ in range(times):
        scheduler.run_once("scheduler-1", messages, ())
        messages = inbox()
    return messages


def expire(request):
    Step.objects.filter(id=request.step).update(complete_by=DatabaseNow())


def due_now():
    """Have what was put off come back; return its message."""
    DeadLetter.objects.update(retry_at=DatabaseNow())
    capture.return_due(10)
    (message,) = inbox()
    return message


def turn_of_what_came_back():
    scheduler.run_once("scheduler-1", inbox(), ["greeter"])


class TestGates:
    @pytest.fixture(autouse=True)
    def _two_agents(self, monkeypatch):
        """Have the second step of each task be of another agent."""
        other = next(name for name in sorted(registry.agents) if name != "greeter")
        self.other = other

    def test_the_agents_of_other_gates_are_served_and_that_one_is_soon_after(self):
        first, second = new_task(), new_task()
        Step.objects.filter(task=second, name="hello").update(agent=self.other)
        with held("gate", "agent = 'greeter'"):
            with soon():
                done = turn(look_at=["greeter", self.other])
            assert done.again_in <= conf.LOCKED_GATE_RETRY_S
            assert states(first)["hello"] == "pending"
            assert states(second)["hello"] == "processing"
            third = new_task()
            Step.objects.filter(task=third, name="hello").update(agent=self.other)
            with soon(conf.LOCK_TIMEOUT_S):  # it is known by now, and not waited for
                turn(look_at=["greeter", self.other])
            assert states(third)["hello"] == "processing"
        turn(look_at=["greeter", self.other])
        assert states(first)["hello"] == "processing"
        assert not gates.contested(["greeter", self.other])

    def test_replies_are_recorded_all_the_same(self):
        task = new_task()
        (request,) = claimed()
        with held("gate", "agent = 'greeter'"), soon():
            turn([reply_to(request)])
            assert states(task)["hello"] == "processed"
        turn()
        assert states(task)["again"] == "processing"

    def test_a_fellow_scheduler_is_waited_for(self):
        task = new_task()
        with another() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(
                "SELECT 1 FROM orchestration_gate WHERE agent = 'greeter' FOR NO KEY UPDATE"
            )
            timer = threading.Timer(conf.LOCK_TIMEOUT_S / 5, cursor.execute, ["COMMIT"])
            timer.start()
            done = turn()
            timer.join()
        assert done.again_in is None
        assert states(task)["hello"] == "processing"


class TestIncidentsAndAlerts:
    @pytest.mark.parametrize("table", ["incident", "alert"])
    def test_a_rejection_by_a_locked_cause_waits_alone(self, table):
        in_error()  # this makes both rows
        mixed = [new_task() for _ in range(6)]
        requests = claimed()
        replies = [
            reply_to(requests[0], "rejected"),
            reply_to(requests[1], "rejected", code="another"),
            *(reply_to(request) for request in requests[2:]),
        ]
        order = {task.id: task for task in mixed}
        with held(table, "true"), soon():
            turn(replies, [])
            outcomes = [
                states(order[Step.objects.get(id=request.step).task_id])["hello"]
                for request in requests
            ]
            assert outcomes == ["processing", "error", *["processed"] * 4]
        turn_of_what_came_back()
        assert Step.objects.filter(process_state="error").count() == 3
        counted = Alert.objects.filter(closed_at=None).values_list("count", flat=True)
        assert sorted(counted) == [1, 2]

    @pytest.mark.parametrize("table", ["incident", "alert"])
    def test_a_failure_by_a_locked_cause_waits_in_the_sweep_alone(self, table):
        in_error()
        Incident.objects.update(outcome="unknown")  # distinguished by its fingerprint alone
        first, second = new_task(), new_task()
        requests = claimed()
        record([reply_to(requests[0], "unknown"), reply_to(requests[1], "unknown", code="other")])
        sweep(LEADER)
        Step.objects.filter(run_after__isnull=False).update(run_after=None)
        requests = claimed()
        record([reply_to(requests[0], "unknown"), reply_to(requests[1], "unknown", code="other")])
        cause = Incident.objects.get(code="other")
        Alert.objects.create(
            fingerprint="step/x", severity="warning", title="x", incident=cause,
            first_seen=DatabaseNow(), last_seen=DatabaseNow(),
        )  # fmt: skip
        column = "id" if table == "incident" else "incident_id"
        with held(table, f"{column} = %s", cause.id), soon():
            assert sweep(LEADER)["retried"] == 1
        assert sweep(LEADER)["retried"] == 1
        assert {step_of(task).failure_count for task in (first, second)} == {2}


def expired(count):
    tasks = [new_task() for _ in range(count)]
    claimed()
    for age, task in enumerate(tasks):
        Step.objects.filter(task=task, process_state="processing").update(
            complete_by=DatabaseNow() - timedelta(seconds=100 - age)
        )
    return tasks


class TestSweep:
    def test_it_goes_on_past_the_oldest_when_those_are_locked(self, monkeypatch):
        tasks = expired(11)
        monkeypatch.setattr(conf, "BATCH_SIZE", 3)
        with held("task", *names(tasks[:7])), soon():
            assert sweep(LEADER)["retried"] == 4
        assert sweep(LEADER)["retried"] == 7

    def test_undoing_goes_on_past_the_oldest_when_those_are_locked(self, monkeypatch):
        tasks = [new_task() for _ in range(6)]
        record([reply_to(request, "rejected") for request in claimed()])
        monkeypatch.setattr(conf, "BATCH_SIZE", 2)
        for age, task in enumerate(tasks):
            Step.objects.filter(task=task, process_state="error").update(
                resolve_by=DatabaseNow() - timedelta(seconds=100 - age)
            )
        with held("task", *names(tasks[:4])), soon():
            assert sweep(LEADER)["to undo"] == 2
        assert sweep(LEADER)["to undo"] == 4

    def test_schedulers_begin_undos_past_those_that_are_locked(self):
        tasks = [new_task() for _ in range(3)]
        record([reply_to(request, "rejected") for request in claimed()])
        Step.objects.filter(process_state="error").update(resolve_by=DatabaseNow())
        assert supervisor.sweep(LEADER)["to undo"] == 3
        with held("task", *names(tasks[:2])), soon():
            assert scheduler_duties.run().more == set()
            assert {task.id for task in Task.objects.exclude(undo_at=None)} == {tasks[2].id}
        scheduler_duties.run()
        assert Task.objects.exclude(undo_at=None).count() == 3

    def test_what_was_reported_early_is_recorded_past_those_that_are_locked(self, monkeypatch):
        goods = Declared(name="goods", signal="goods")
        monkeypatch.setitem(registry.workflows, "goods", Workflow(name="goods", steps=[goods]))
        tasks = [new_task(workflow="goods", data={}) for _ in range(3)]
        early = {"id": "1", "actor": "gate", "of": "", "outcome": "done", "result": {}}
        Wait.objects.update(report=early)
        with held("task", *names(tasks[:2])), soon():
            scheduler_duties.run()
            assert {task.id for task in Task.objects.filter(state="processed")} == {tasks[2].id}
        scheduler_duties.run()
        assert Task.objects.filter(state="processed").count() == 3

    @pytest.mark.parametrize("act", ["hold", "undo"])
    def test_an_operation_goes_on_past_locked_tasks(self, monkeypatch, act):
        monkeypatch.setattr(conf, "BATCH_SIZE", 2)
        tasks = [new_task() for _ in range(5)]
        operation = running(tasks, act)
        with held("task", *names(tasks[:3])), soon():
            advance(operation)
            assert items(operation)["waiting"] == 3
        advance(operation)
        assert "waiting" not in items(operation)

    @pytest.mark.parametrize("table", ["incident", "incidenttally", "alert"])
    def test_what_is_locked_of_incidents_and_alerts_keeps_no_duty_from_its_end(self, table):
        steps = [in_error(), in_error(code="other")]
        Alert.objects.create(
            fingerprint="system/over", severity="warning", title="x",
            first_seen=DatabaseNow(), last_seen=DatabaseNow(),
        )  # fmt: skip
        first = "system/over" if table == "alert" else steps[0].incident_id
        which = "fingerprint = %s" if table == "alert" else (
            "id = %s" if table == "incident" else "incident_id = %s"
        )  # fmt: skip
        with held(table, which, first), soon():
            sweep(LEADER)
            counted = dict(Incident.objects.values_list("id", "failures"))
            assert counted[steps[1].incident_id] == 1
            assert counted[steps[0].incident_id] == (1 if table == "alert" else 0)
        sweep(LEADER, memory=Memory())
        assert set(Incident.objects.values_list("failures", flat=True)) == {1}
        assert Alert.objects.filter(fingerprint="system/over", closed_at=None).count() == 0

    def test_a_duty_begins_nothing_more_when_its_time_is_over(self, monkeypatch):
        expired(6)
        monkeypatch.setattr(conf, "BATCH_SIZE", 2)
        monkeypatch.setattr(conf, "DUTY_BUDGET_S", 0.0)
        assert sweep(LEADER)["retried"] == 0  # not even begun
        monkeypatch.setattr(conf, "DUTY_BUDGET_S", 10.0)
        assert sweep(LEADER)["retried"] == 6


class TestLease:
    def test_it_is_renewed_beside_a_sweep_that_takes_long(self, monkeypatch):
        monkeypatch.setattr(conf, "LEASE_S", 0.3)
        leadership = leader_election.acquire("supervisor-1")
        with leader_election.Renewal(leadership) as renewal:
            until = time.monotonic() + 3 * conf.LEASE_S
            while time.monotonic() < until:
                renewal.progress()
                assert leader_election.acquire("supervisor-2") is None
            assert leader_election.holds(leadership)

    def test_a_sweep_that_hangs_loses_it(self, monkeypatch):
        monkeypatch.setattr(conf, "LEASE_S", 0.3)
        monkeypatch.setattr(conf, "SWEEP_STALLED_AFTER_S", 0.2)
        with leader_election.Renewal(leader_election.acquire("supervisor-1")):
            wait_for(
                lambda: leader_election.acquire("supervisor-2"), "another leads", 10, pause=0.05
            )

    def test_one_that_was_lost_is_not_taken_back(self, monkeypatch):
        monkeypatch.setattr(conf, "LEASE_S", 0.3)
        leadership = leader_election.acquire("supervisor-1")
        with leader_election.Renewal(leadership) as renewal:
            Lease.objects.update(holder="supervisor-2", epoch=leadership.epoch + 1)
            wait_for(lambda: not renewal._thread.is_alive(), "the thread gives up", 10)
        assert not leader_election.holds(leadership)


class TestAlert:
    def look(self, locking):
        monitors.look(monitors.Debounce(), locking)
        return Alert.objects.filter(fingerprint__startswith="system/blocked/", closed_at=None)

    def test_who_holds_locks_for_long_is_named_until_the_end(self, monkeypatch):
        monkeypatch.setattr(conf, "BLOCKING_ALERT_AFTER_S", 0.0)
        locking = monitors.Debounce()
        new_task()
        with held("task", "true"):
            (alert,) = self.look(locking)
            with another() as cursor:
                cursor.execute("SELECT usename FROM pg_stat_activity WHERE pid = pg_backend_pid()")
                (user,) = cursor.fetchone()
        pid = alert.fingerprint.rpartition("/")[2]
        assert f"User {user}" in alert.detail
        assert "idle in transaction" in alert.detail
        assert "locks in orchestration_task" in alert.detail
        assert "last statement: SELECT 1 FROM orchestration_task" in alert.detail
        assert f"pg_terminate_backend({pid})" in alert.detail
        wait_for(lambda: not self.look(locking), "the alert is closed", 10)

    def test_it_is_the_same_transaction_that_has_to_last(self):
        new_task()
        locking = monitors.Debounce()
        with held("task", "true"):
            assert not self.look(locking)  # not yet
        with another() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT count(*) FROM orchestration_task")  # a reader locks nothing
            assert sessions.blocking() == []

    def test_to_an_ordinary_role_only_what_it_may_see_is_shown(self):
        new_task()
        with held("task", "true"), connection.cursor() as mine:
            mine.execute("CREATE ROLE ordinary")
            try:
                mine.execute("SET ROLE ordinary")
                (session,) = sessions.blocking()
                (trouble,) = sessions.blocked([session])
            finally:
                mine.execute("RESET ROLE")
                mine.execute("DROP ROLE ordinary")
        assert (session.open_for, session.state, session.host) == (None, "", "")
        assert f"User {session.user}" in trouble.detail
        assert "pg_terminate_backend" in trouble.detail
        assert "SELECT 1" not in trouble.detail


class TestUndo:
    def test_it_and_a_late_reply_to_the_same_task_never_wait_in_a_circle(self):
        """Under the lock of the task no claim is at work on its steps: there is one lock to wait for."""
        task = new_task()
        (request,) = claimed()
        Step.objects.filter(id=request.step).update(complete_by=DatabaseNow())
        sweep(LEADER)  # pending again: a late reply puts it in doubt
        errors = []

        def cancel():
            try:
                undo(task.id, actor="olga", reason="cancelled")
            except Error as error:
                errors.append(error)
            finally:
                connection.close()

        with held("task", "id = %s", str(task.id)):
            other = threading.Thread(target=cancel)
            other.start()
            wait_for(_waits_for_the_task, "the undo waits for the task")
            free = "SELECT count(*) FROM (SELECT 1 FROM orchestration_step WHERE task_id = %s"
            with another() as cursor:  # it holds no step meanwhile
                cursor.execute(f"{free} FOR UPDATE SKIP LOCKED) s", [str(task.id)])
                assert cursor.fetchone()[0] == Step.objects.filter(task=task).count()
        other.join(10)
        assert not errors


def _waits_for_the_task():
    with another() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                       "AND datname = current_database()")  # fmt: skip
        return cursor.fetchone()[0] > 0
