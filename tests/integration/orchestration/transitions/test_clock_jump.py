"""The database's clock jumps: all deadlines move by it, once, and nothing irreversible follows.

The clock of the tests' Postgres cannot be set. So what a row would look like after a jump is written
into it, and what a supervisor remembers of the clock is moved (`jumped`).
"""

import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models import F

from orchestration import conf, registry
from orchestration.cluster import leader_election
from orchestration.database.clock import database_now
from orchestration.decisions.amendment import Amendment
from orchestration.housekeeping import agent_rows
from orchestration.models import (
    Alert,
    Application,
    ClockJump,
    DeadLetter,
    Gate,
    JumpedTime,
    Lease,
    Notification,
    NotificationChannel,
    Operation,
    Policy,
    StatusMessage,
    Step,
    StepPolicy,
    Submission,
    Task,
    Worker,
)
from orchestration.models.fields import DatabaseNow
from orchestration.payloads.placeholders import field
from orchestration.transitions.change import FinalFailure
from orchestration.transitions.clock_jump import allow_for_jump, move_times
from orchestration.transitions.failures import failed_tasks, lock_failed
from orchestration.transitions.locked_task import lock
from orchestration.transitions.overdue import mark_overdue
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit
from orchestration.transitions.settle import finish
from orchestration.transitions.suspicion import suspected
from orchestration.transitions.unmended import request_undo_of_unmended, unmended_tasks
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.clock_jumps import jump, known, left, near, shifted
from tests.support.database import another
from tests.support.engine import claimed, new_task, reply_to, staff, step_of, sweep, watch_of
from tests.support.unmended import PARTY, refused

pytestmark = pytest.mark.django_db
HOUR = 3600.0


@pytest.fixture(autouse=True)
def _staffed():
    staff()


def jumped(watch, seconds):
    """Have the database's clock jump, as far as this supervisor can see."""
    watch._clock._base = tuple(lead - seconds for lead in watch._clock._base)


def watching(name="supervisor-1"):
    watch = watch_of(name)
    watch.step(0.0)
    return watch


def keep_house():
    """Have a housekeeper sweep that has just begun to lead."""
    leader_election.resign("housekeeper-1", name=leader_election.HOUSEKEEPER)
    watch_of("housekeeper-1", "housekeeper").step(0.0)


def open_alerts():
    return list(Alert.objects.filter(closed_at=None).values_list("fingerprint", flat=True))


class TestSupervisor:
    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_jump_is_handled_and_reported_once(self, seconds):
        watch = watching()
        jumped(watch, seconds)
        assert watch.step(1.0) == 0.0
        assert ClockJump.objects.get().seconds == near(seconds)
        for moment in range(2, 9):
            watch._memory.next_at.clear()
            watch.step(float(moment))
        assert ClockJump.objects.count() == 1
        alert = Alert.objects.get(closed_at=None)
        assert (alert.fingerprint, alert.severity) == ("system/clock_jumped", "critical")
        assert f"{'forward' if seconds > 0 else 'back'} by 3600 s" in alert.title

    def test_some_seconds_back_are_noted_and_move_nothing(self):
        task = new_task()
        claimed()
        step = step_of(task)
        before = left(step, "complete_by")
        watch = watching()
        jumped(watch, -20.0)
        watch.step(1.0)
        assert ClockJump.objects.get().seconds == near(-20)
        assert left(step, "complete_by") == near(before)
        alert = Alert.objects.get(closed_at=None)
        assert (alert.fingerprint, alert.severity) == ("system/clock_jumped", "warning")
        watch.step(2.0)
        assert ClockJump.objects.count() == 1

    def test_there_and_back_is_one_alert(self):
        watch = watching()
        for moment, seconds in enumerate((HOUR, -HOUR), 1):
            jumped(watch, seconds)
            watch.step(float(2 * moment))
            watch.step(float(2 * moment + 1))
        assert known() == near(0)
        assert ClockJump.objects.count() == 2
        alert = Alert.objects.get()
        assert (alert.closed_at, alert.count) == (None, 2)
        assert "-3600 s" in alert.detail

    def test_the_alert_closes_after_a_while(self):
        watch = watching()
        jumped(watch, HOUR)
        watch.step(1.0)
        keep_house()
        assert open_alerts() == ["system/clock_jumped"]
        shifted(ClockJump.objects, conf.CLOCK_JUMP_ALERT_S, "at")
        keep_house()
        assert open_alerts() == []

    def test_housekeeper_waits_until_a_supervisor_has_handled_the_jump(self):
        late = new_task()
        shifted(Task.objects, HOUR - 10, "complete_by")
        first, house = watching(), watch_of("housekeeper-1", "housekeeper")
        house.step(0.0)
        for watch in (first, house):
            jumped(watch, HOUR)
        shifted(Task.objects, HOUR, "complete_by")  # as all times are, by the new clock
        house._memory.next_at.clear()
        house.step(5.0)
        late.refresh_from_db()
        assert not late.overdue
        assert not ClockJump.objects.exists()
        first.step(6.0)
        house.step(7.0)
        late.refresh_from_db()
        assert not late.overdue
        assert ClockJump.objects.get().by.startswith("supervisor-1")

    def test_standby_handles_a_jump_that_its_predecessor_did_not(self):
        first, second = watching(), watching("supervisor-2")
        for watch in (first, second):
            jumped(watch, HOUR)
        second.step(1.0)
        assert not ClockJump.objects.exists()  # it does not lead
        leader_election.resign("supervisor-1")  # the leader is gone before it has looked
        second.step(2.0)
        assert ClockJump.objects.get().by.startswith("supervisor-2")
        first.step(3.0)
        leader_election.resign("supervisor-2")
        first.step(4.0)
        assert ClockJump.objects.count() == 1

    def test_outdated_sum_of_jumps_is_refused(self):
        assert jump(HOUR)
        assert not allow_for_jump(HOUR, handled=0.0, since=1.0, by="supervisor-2")
        assert ClockJump.objects.count() == 1

    def test_failure_while_handling_is_left_to_the_next_step(self, monkeypatch):
        watch, task = watching(), new_task()
        claimed()
        shifted(Step.objects.filter(task=task), HOUR, "complete_by", "dispatched_at")
        jumped(watch, HOUR)
        with monkeypatch.context() as broken:
            broken.setattr("orchestration.supervision.conditions.jumped", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                watch.step(1.0)
        assert not ClockJump.objects.exists()
        assert step_of(task).process_state == "processing"  # and it did not sweep
        watch.step(2.0)
        watch.step(3.0)
        assert ClockJump.objects.count() == 1
        assert step_of(task).failure_count == 0

    def test_lease_far_in_the_future_has_expired(self):
        leader_election.acquire("supervisor-1")
        assert leader_election.acquire("supervisor-2") is None
        Lease.objects.update(expires_at=F("expires_at") + timedelta(hours=1))
        assert leader_election.acquire("supervisor-2") is not None


class TestSteps:
    @pytest.mark.parametrize("seconds", [HOUR, -HOUR, 40.0, -40.0])
    def test_deadline_of_a_sent_request_keeps_its_distance(self, seconds):
        step = step_of(new_task())
        claimed()
        before, dispatched = left(step, "complete_by"), step_of(step.task).dispatched_at
        shifted(Step.objects, seconds, "complete_by", "dispatched_at")
        jump(seconds)
        assert left(step, "complete_by") == near(before)
        moved = step_of(step.task).dispatched_at - dispatched
        assert moved.total_seconds() == near(-seconds)  # as it was written

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_deadline_of_a_request_sent_after_the_jump_is_unchanged(self, seconds):
        step = step_of(new_task())
        claimed()
        before = left(step, "complete_by")
        jump(seconds)
        assert left(step, "complete_by") == near(before)

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_failed_step_is_decided_at_once(self, seconds):
        task = new_task()
        (request,) = claimed()
        record([reply_to(request, "transient")])
        shifted(Step.objects, seconds, "complete_by", "dispatched_at")
        jump(seconds)
        assert left(step_of(task), "complete_by") <= 0

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_a_retry_waits_as_long_as_before(self, seconds):
        step = self.retrying(300)
        shifted(Step.objects, seconds, "run_after", "pending_since")
        jump(seconds)
        assert left(step, "run_after") == near(300)

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_retry_scheduled_after_the_jump_does_not_move(self, seconds):
        step = self.retrying(300)
        jump(seconds)
        assert left(step, "run_after") == near(300)

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_time_that_a_submission_sets_stays_as_it_is(self, monkeypatch, seconds):
        """A date is right by the clock as it is now: a reminder comes neither early nor late."""
        step, at = self.to_begin(monkeypatch)
        shifted(Step.objects, 2 * HOUR, "pending_since")  # it was submitted before the jump
        waits = step_of(step.task, "remind").pending_since
        jump(seconds)
        step.refresh_from_db()
        assert (step.run_after, step.pending_since) == (at, waits)
        assert not JumpedTime.objects.exists()

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_wait_of_a_resubmit_ends_as_late_as_before(self, monkeypatch, seconds):
        """It is a duration, though nothing was ever sent: the first request could not be built."""
        step, _ = self.to_begin(monkeypatch)
        with transaction.atomic():
            change = lock([step.task_id])[step.task_id]
            failure = FinalFailure(step=step.id, code="unresolved", message="no", attempt=0)
            change.fail(failure)
            finish([change], by="s")
        wait = Amendment(wait=300)
        assert resubmit(step.id, attempt=0, actor="a", reason="r", amendment=wait) is None
        shifted(Step.objects, seconds, "run_after", "pending_since")
        jump(seconds)
        assert left(step, "run_after") == near(300)

    def to_begin(self, monkeypatch):
        """Return the first step of a task that may begin in two days, and when that is."""
        steps = [
            Declared(name="remind", agent="greeter", action="greet", request={"to": "x"}, undo=None)
        ]
        later = Workflow(name="later", run_after=field("at"), steps=steps)
        monkeypatch.setitem(registry.workflows, "later", later)
        at = database_now() + timedelta(days=2)
        task = new_task(workflow="later", data={"at": at.isoformat()})
        return step_of(task, "remind"), at

    def retrying(self, wait):
        step = step_of(new_task())
        Step.objects.filter(id=step.id).update(
            attempt=1, error_code="timeout",
            pending_since=DatabaseNow(), run_after=DatabaseNow() + timedelta(seconds=wait)
        )  # fmt: skip
        return step

    @pytest.mark.parametrize("first", [HOUR, -HOUR])
    def test_jump_there_and_back_restores_all_times(self, first):
        waits, flies = self.retrying(300), step_of(new_task())
        Step.objects.filter(id=flies.id).update(priority=1)
        assert len(claimed()) == 1
        before = left(flies, "complete_by")
        for seconds in (first, -first):
            shifted(Step.objects, seconds, "run_after", "pending_since", "complete_by")
            jump(seconds)
        assert left(waits, "run_after") == near(300)
        assert left(flies, "complete_by") == near(before)

    def test_key_expires_too_early_but_never_too_late(self):
        Policy.objects.update(key_memory=86400)
        step = step_of(new_task())
        claimed()
        before = left(step, "keyed_at")
        jump(HOUR)
        assert left(step, "keyed_at") == near(before)
        jump(-HOUR)
        assert left(step, "keyed_at") == near(before - HOUR)

    def test_silence_across_a_jump_is_not_a_failure_of_the_service(self):
        task = new_task()
        claimed()
        Worker.objects.update(started_at=DatabaseNow() - timedelta(hours=9))
        shifted(Step.objects, HOUR, "complete_by", "dispatched_at")
        before = lock_failed([task.id], now=self.now())
        assert suspected(before).keys() == {"greeter"}
        jump(HOUR)
        assert not suspected(before)

    def now(self):
        leadership = leader_election.acquire("supervisor-1")
        assert leadership is not None
        return leadership.at


class TestUndo:
    @pytest.fixture(autouse=True)
    def _party(self, monkeypatch):
        monkeypatch.setitem(registry.workflows, "party", PARTY)
        Policy.objects.filter(agent="greeter").update(on_rejection="wait", resolve_within=1800)

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR, 40.0, -40.0])
    def test_a_refused_step_has_as_long_to_be_mended(self, seconds):
        task, step = refused()
        watch = watching()
        shifted(Step.objects, seconds, "resolve_by", "ended_at")
        jumped(watch, seconds)
        watch.step(1.0)
        watch.step(2.0)
        assert left(step, "resolve_by") == near(1800)
        assert Task.objects.get(id=task.id).state == "error"

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_rejection_after_the_jump_is_not_undone_early(self, seconds):
        _, step = refused()
        jump(seconds)
        assert left(step, "resolve_by") >= 1798

    def test_rejection_of_a_step_with_more_time_than_its_agents_is_not_undone_early(self):
        agent_rows.ensure_steps()
        Policy.objects.filter(agent="greeter").update(resolve_within=600)
        StepPolicy.objects.filter(workflow="party", step="pay").update(resolve_within=1800)
        _, step = refused()
        jump(-HOUR)
        assert left(step, "resolve_by") == near(1800)

    def test_jump_during_a_sweep_undoes_nothing(self):
        """What is due is what was due when the lease was renewed, by the clock of then."""
        task, _ = refused()
        leadership = leader_election.acquire("supervisor-1")
        assert leadership is not None
        shifted(Step.objects, HOUR, "resolve_by")  # the clock jumps now
        before = leadership.at - timedelta(hours=1)
        assert unmended_tasks(10, now=leadership.at) == [task.id]  # the control
        assert unmended_tasks(10, now=before) == []
        assert request_undo_of_unmended([task.id], by="x", now=before) == (0, 0)
        assert sweep(replaced(leadership, before))["to undo"] == 0
        assert Task.objects.get(id=task.id).state == "error"

    def test_nor_does_one_back(self):
        task, _ = refused()
        later = leader_election.acquire("supervisor-1").at + timedelta(hours=1)
        assert unmended_tasks(10, now=later) == []
        assert request_undo_of_unmended([task.id], by="x", now=later) == (0, 0)

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_nor_does_anything_expire_in_mid_sweep(self, seconds):
        task = new_task("8")
        claimed()
        at = leader_election.acquire("supervisor-1").at
        if seconds > 0:
            shifted(Step.objects, HOUR, "complete_by")
            assert failed_tasks(10, now=at) == [task.id]  # the control
        verified = at - timedelta(seconds=seconds)
        assert failed_tasks(10, now=verified) == []
        assert lock_failed([task.id], now=verified) == []


def replaced(leadership, at):
    return leader_election.Leadership(holder=leadership.holder, epoch=leadership.epoch, at=at)


class TestTasks:
    def late(self, seconds):
        task = new_task()
        shifted(Task.objects, seconds, "complete_by")
        return task

    def mark(self):
        return [
            task.id for task in mark_overdue(10, now=leader_election.acquire("supervisor-1").at)
        ]

    def test_jump_makes_no_task_overdue(self):
        task = self.late(HOUR)
        jump(HOUR)
        assert self.mark() == []
        task.refresh_from_db()
        assert not task.overdue
        assert left(task, "complete_by") > 0
        Task.objects.update(complete_by=DatabaseNow())
        assert self.mark() == [task.id]  # it was put off once

    def test_task_created_after_the_jump_is_overdue_in_time(self):
        jump(HOUR)
        task = new_task()
        Task.objects.update(complete_by=DatabaseNow())
        assert self.mark() == [task.id]

    def test_jump_there_and_back_delays_nothing(self):
        task = self.late(HOUR)
        jump(HOUR)
        jump(-HOUR)
        assert self.mark() == [task.id]


class TestGate:
    def gate(self, **values):
        Gate.objects.filter(agent="greeter").update(**values)
        return Gate.objects.get(agent="greeter")

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_its_times_move(self, seconds):
        soon = DatabaseNow() + timedelta(seconds=30 - seconds)
        ago = DatabaseNow() - timedelta(seconds=5 + seconds)
        gate = self.gate(state="open", probe_at=soon, paused_until=soon, tokens_at=ago)
        jump(seconds)
        assert left(gate, "probe_at") == near(30)
        assert left(gate, "paused_until") == near(30)
        assert left(gate, "tokens_at") == near(-5)

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_what_it_learned_after_the_jump_makes_it_wait_no_longer(self, seconds):
        soon = DatabaseNow() + timedelta(seconds=5)
        gate = self.gate(state="open", probe_at=soon, paused_until=soon, tokens_at=DatabaseNow())
        jump(seconds, since=3.0)
        assert left(gate, "probe_at") <= 5
        assert left(gate, "paused_until") <= 5
        assert left(gate, "tokens_at") <= 0

    def test_it_hears_again_after_a_jump_back(self):
        """The times that it has read lie in the future from then on."""
        before = DatabaseNow() + timedelta(seconds=HOUR - 5)
        gate = self.gate(since=before, answered_at=before, opened_at=before)
        jump(-HOUR)
        for name in ("since", "answered_at", "opened_at"):
            assert left(gate, name) == near(-5)

    def test_a_rate_lets_requests_through_at_once_after_a_jump_back(self):
        Policy.objects.filter(agent="greeter").update(rate=2)
        self.gate(tokens=0, tokens_at=DatabaseNow() + timedelta(seconds=HOUR - 5))
        new_task()
        assert claimed() == []  # the control
        jump(-HOUR)
        assert len(claimed()) == 1


class TestRest:
    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_liveness_of_processes_is_unaffected(self, seconds):
        Worker.objects.all().delete()
        for name, age in (("alive", 2), ("dead", 55)):
            Worker.objects.create(
                instance=name, queue="greeter", host="h", pid=1,
                started_at=DatabaseNow() - timedelta(days=1),
                seen_at=DatabaseNow() - timedelta(seconds=age + seconds),
            )  # fmt: skip
        jump(seconds)
        seen = [left(worker, "seen_at") for worker in Worker.objects.order_by("instance")]
        assert seen == [near(-2), near(-55)]

    def test_outgoing_messages_are_not_delayed_by_the_jump(self):
        ahead = DatabaseNow() + timedelta(seconds=HOUR + 20)
        lately = DatabaseNow() + timedelta(seconds=HOUR - 20)
        till = Application.objects.create(name="till", push_after=ahead)
        posted = Submission.objects.create(
            workflow="greet", reference="s", data={}, created_at=lately, tries=1, retry_at=ahead
        )
        letter = DeadLetter.objects.create(
            queue="scheduler", body="{}", reason="x", tries=1, retry_at=ahead
        )
        about = {"task": new_task(), "reply_to": "till", "kind": "step"}
        first = StatusMessage.objects.create(number=8, created_at=lately, **about)
        again = StatusMessage.objects.create(number=9, tries=1, send_after=ahead, **about)
        notification = Notification.objects.create(
            alert=Alert.objects.create(fingerprint="f", severity="warning", title="t"),
            channel=NotificationChannel.objects.create(name="c", kind="email", address="a@example.com"),
            kind="opened", send_after=ahead,
        )  # fmt: skip
        jump(-HOUR)
        assert left(till, "push_after") == near(20)
        assert left(again, "send_after") == near(20)
        assert left(notification, "send_after") == near(20)
        assert left(posted, "retry_at") == near(20)
        assert left(letter, "retry_at") == near(20)
        assert left(posted, "created_at") == near(-20)
        assert left(first, "created_at") == near(-20)

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_operation_can_be_undone_as_long_as_before(self, seconds):
        row = Operation.objects.create(
            act="hold", selection={"tasks": []}, actor="ann", reason="x", state="waiting",
            starts_at=DatabaseNow() + timedelta(seconds=8 - seconds),
            tokens_at=DatabaseNow() - timedelta(seconds=seconds),
        )  # fmt: skip
        jump(seconds)
        assert 7 < left(row, "starts_at") <= conf.OPERATION_GRACE_S
        assert left(row, "tokens_at") <= 0

    def test_alerts_about_lasting_conditions_count_from_the_jump_on(self):
        watch = watching()
        new_task()
        shifted(Step.objects.filter(process_state="pending"), HOUR, "pending_since")
        jumped(watch, HOUR)
        watch.step(1.0)
        keep_house()
        assert open_alerts() == ["system/clock_jumped"]
        shifted(ClockJump.objects, 1000, "at")
        keep_house()
        assert "system/waiting/greeter" in open_alerts()


@pytest.mark.django_db(transaction=True)
def test_jump_noticed_by_several_supervisors_is_handled_by_one():
    """Each that thinks it leads has seen the same sum: without the lease's lock, all would move."""
    step = step_of(new_task())
    Step.objects.filter(id=step.id).update(
        attempt=1, run_after=DatabaseNow(), pending_since=DatabaseNow()
    )
    shifted(Step.objects, 9 * HOUR, "run_after", "pending_since")
    ready, landed = threading.Barrier(4), []

    def supervisor(name):
        try:
            ready.wait(10)
            landed.append(allow_for_jump(HOUR, handled=0.0, since=1.0, by=name))
        finally:
            connection.close()

    threads = [threading.Thread(target=supervisor, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(landed) == [False, False, False, True]
    assert ClockJump.objects.count() == 1
    assert left(step, "run_after") == near(-8 * HOUR)


@contextmanager
def held(table, **which):
    """Have another session hold the rows of a table, or those with these values."""
    where = " AND ".join(f"{name} = %({name})s" for name in which) or "true"
    with another() as session:
        session.execute("BEGIN")
        session.execute(f"SELECT 1 FROM orchestration_{table} WHERE {where} FOR UPDATE", which)
        yield
        session.execute("ROLLBACK")


@pytest.mark.django_db(transaction=True)
class TestLocked:
    def two_in_flight(self, seconds):
        """Have two steps in flight when the clock jumps; return them, and what is left to them."""
        steps = [step_of(new_task()) for _ in range(2)]
        claimed()
        before = [left(step, "complete_by") for step in steps]
        shifted(Step.objects, seconds, "complete_by", "dispatched_at")
        return steps, before

    @pytest.mark.parametrize("seconds", [HOUR, -HOUR])
    def test_locked_step_moves_once_it_is_free_and_delays_no_other(self, seconds):
        watch = watching()
        (locked, other), before = self.two_in_flight(seconds)
        failing = step_of(new_task())
        with held("step", id=locked.id):
            jumped(watch, seconds)
            watch.step(1.0)
            assert open_alerts() == ["system/clock_jumped"]
            assert left(other, "complete_by") == near(before[1])
            assert left(locked, "complete_by") == near(before[0] - seconds)
            Step.objects.filter(id=failing.id).update(
                process_state="processing", complete_by=DatabaseNow()
            )
            watch.step(2.0)  # sweeps
            assert step_of(failing.task).failure_count == 1
            assert JumpedTime.objects.exists()
        for moment in (4.0, 6.0, 8.0):
            watch.step(moment)
            assert left(locked, "complete_by") == near(before[0])
            assert left(other, "complete_by") == near(before[1])
        assert step_of(locked.task).failure_count == 0
        assert not JumpedTime.objects.exists()

    def test_unmoved_steps_neither_expire_nor_are_undone(self):
        """Also when it is freed just before the sweep would act on it."""
        self.two_in_flight(HOUR)
        with held("step"):
            jump(HOUR)
        assert failed_tasks(10, now=leader_election.acquire("supervisor-1").at) == []
        JumpedTime.objects.all().delete()
        assert (
            len(failed_tasks(10, now=leader_election.acquire("supervisor-1").at)) == 2
        )  # the control

    def test_a_refused_step_that_has_yet_to_move_is_not_undone(self, monkeypatch):
        monkeypatch.setitem(registry.workflows, "party", PARTY)
        Policy.objects.filter(agent="greeter").update(on_rejection="wait", resolve_within=1800)
        task, _ = refused()
        shifted(Step.objects, HOUR, "resolve_by", "ended_at")
        with held("step"):
            jump(HOUR)
        at = leader_election.acquire("supervisor-1").at
        assert unmended_tasks(10, now=at) == []
        assert request_undo_of_unmended([task.id], by="x", now=at) == (0, 0)
        JumpedTime.objects.all().delete()
        assert unmended_tasks(10, now=at) == [task.id]  # the control

    @pytest.mark.parametrize("first", [HOUR, -HOUR])
    def test_step_locked_during_two_jumps_moves_by_both(self, first):
        (step, _), before = self.two_in_flight(first)
        with held("step"):
            jump(first)
            jump(first)
        shifted(Step.objects, first, "complete_by")  # as after the second, too
        JumpedTime.objects.update(was=F("was") - timedelta(seconds=first))
        JumpedTime.objects.update(becomes=F("becomes") - timedelta(seconds=first))
        move_times()
        assert left(step, "complete_by") == near(before[0])
        assert not JumpedTime.objects.exists()

    def test_rows_written_meanwhile_do_not_move(self):
        (step, _), _ = self.two_in_flight(HOUR)
        with held("step"):
            jump(HOUR)
        Step.objects.filter(id=step.id).update(complete_by=DatabaseNow() + timedelta(seconds=77))
        move_times()
        assert left(step, "complete_by") == near(77)
        assert not JumpedTime.objects.exists()

    @pytest.mark.parametrize("table", ["task", "gate", "worker", "policy"])
    def test_no_locked_row_stops_it(self, table):
        watch = watching()
        (step, _), before = self.two_in_flight(HOUR)
        with held(table):
            jumped(watch, HOUR)
            watch.step(1.0)
            assert ClockJump.objects.exists()
            assert left(step, "complete_by") == near(before[0])

    def test_jump_that_cannot_be_handled_raises_an_alert(self, monkeypatch):
        watch = watching()
        jumped(watch, HOUR)
        monkeypatch.setattr(
            "orchestration.supervision.watch.allow_for_jump", lambda *_, **__: 1 / 0
        )
        for moment in (1.0, 2.0):
            with pytest.raises(ZeroDivisionError):
                watch.step(moment)
        assert (Alert.objects.get().fingerprint, Alert.objects.get().count) == (
            "system/clock_jumped", 1,
        )  # fmt: skip

    def test_more_than_a_batch_moves(self, monkeypatch):
        monkeypatch.setattr(conf, "BATCH_SIZE", 2)
        steps = [step_of(new_task()) for _ in range(5)]
        waits = Step.objects.filter(process_state="pending")
        waits.update(attempt=1, run_after=DatabaseNow(), pending_since=DatabaseNow())
        shifted(waits, 9 * HOUR, "run_after", "pending_since")
        with held("step", id=steps[0].id):
            jump(HOUR)
        moved = [left(step, "run_after") == near(-8 * HOUR) for step in steps]
        assert moved == [False, True, True, True, True]
