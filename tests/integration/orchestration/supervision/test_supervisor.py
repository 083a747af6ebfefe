"""Recovery, leadership and doorbells, on a real Postgres and Redis."""

from datetime import timedelta

import pytest
from django.db.models import F

from orchestration import conf
from orchestration.cluster import leader_election
from orchestration.cluster.leader_election import Leadership
from orchestration.database import clock
from orchestration.messaging import queues
from orchestration.models import (
    Alert,
    Attempt,
    Event,
    Gate,
    Lease,
    Policy,
    StatusMessage,
    Step,
    Submission,
    Task,
    Worker,
)
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.claim import claim
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit
from tests.support.engine import (
    claimed,
    in_error,
    new_task,
    postpone_retries,
    reply_to,
    run_to_end,
    staff,
    states,
    step_of,
    sweep,
    watch_of,
)
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()
    postpone_retries()


def half() -> float:
    return 0.5


def expire(task):
    """Let a step's deadline pass."""
    Step.objects.filter(task=task, process_state="processing").update(
        complete_by=DatabaseNow() - timedelta(seconds=1)
    )


def due(task):
    """Let a retry's wait pass."""
    Step.objects.filter(task=task, run_after__isnull=False).update(run_after=DatabaseNow())


def answered(request, outcome="done"):
    """Have a scheduler hear of an attempt's end; return what it claims then."""
    heard = record([reply_to(request, outcome)]).observed
    return claim(["greeter"], "scheduler-1", heard).requests.get("greeter", [])


def test_step_before_its_deadline_is_unchanged():
    task = new_task()
    claimed()
    assert str(sweep(LEADER)) == ""
    assert step_of(task).process_state == "processing"


def test_expired_step_is_counted_and_retried_after_a_wait():
    task = new_task()
    (old,) = claimed()
    expire(task)
    assert str(sweep(LEADER, half)) == "1 retried"
    step = step_of(task)
    assert (step.process_state, step.locked_by, step.complete_by) == ("pending", None, None)
    assert (step.failure_count, step.outcome) == (1, "expired")
    attempt = Attempt.objects.get(step=step)
    assert (attempt.outcome, attempt.scheduler, attempt.number) == ("expired", "scheduler-1", 1)
    assert claimed() == []  # it waits its time
    due(task)
    assert str(sweep(LEADER)) == "1 retries due"
    (new,) = claimed()
    assert (new.attempt, new.key) == (2, old.key)


@pytest.mark.parametrize("outcome", ["transient", "unknown"])
def test_failed_step_is_counted_once_with_its_own_reason(outcome):
    task = new_task()
    (request,) = claimed()
    record([reply_to(request, outcome)])
    assert str(sweep(LEADER)) == "1 retried"
    assert str(sweep(LEADER)) == ""
    step = step_of(task)
    assert (step.failure_count, step.outcome) == (1, outcome)
    assert step.error_code == f"{outcome}_code"
    assert Attempt.objects.filter(step=step).count() == 1
    event = Event.objects.get(step=step)
    assert event.actor == "supervisor-1 (epoch 3)"
    assert event.reason.startswith(f"failure 1 ({outcome}_code): again in ")


def test_step_past_the_threshold_is_an_error_with_an_alert():
    Policy.objects.filter(agent="greeter").update(failure_threshold=3)
    task = new_task()
    for _ in range(3):
        claimed()
        expire(task)
        sweep(LEADER)
        due(task)
        sweep(LEADER)
    step = step_of(task)
    task.refresh_from_db()
    assert (step.process_state, step.failure_count, task.state) == ("error", 3, "error")
    assert "(failed 3 times)" in step.error_message
    assert Alert.objects.get(closed_at=None).id == step.alert_id
    assert Attempt.objects.filter(step=step).count() == 3


def test_backoff_doubles_up_to_the_cap():
    Policy.objects.filter(agent="greeter").update(backoff=2, backoff_cap=5, failure_threshold=9)
    task = new_task()
    waits = []
    for _ in range(4):
        claimed()
        expire(task)
        before = clock.database_now()
        sweep(LEADER, lambda: 1.0)
        after = clock.database_now()
        run_after = step_of(task).run_after
        waits.append(((run_after - after).total_seconds(), (run_after - before).total_seconds()))
        due(task)
        sweep(LEADER)
    # it waits from a moment within its sweep, however long that took
    for (shortest, longest), wait in zip(waits, (2, 4, 5, 5), strict=True):
        assert shortest <= wait <= longest


def test_request_that_kills_its_worker_fails_no_other_step():
    """All others in flight end in silence too, and more comes in with each round."""
    tasks = [new_task() for _ in range(7)]
    poison = tasks[3]
    rounds = 0
    while step_of(poison).process_state != "error":
        rounds += 1
        assert rounds < 30
        requests = claimed()
        if poison.id in {request.task for request in requests}:
            Worker.objects.update(started_at=DatabaseNow())  # the next one, in its place
            Step.objects.filter(locked_by__isnull=False).update(complete_by=DatabaseNow())
            tasks += [new_task(), new_task()]
        else:
            record([reply_to(request) for request in requests])
        sweep(LEADER)
        Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
        sweep(LEADER)
    assert step_of(poison).failure_count == 5
    innocent = [task for task in tasks if task != poison]
    while requests := claimed():
        record([reply_to(request) for request in requests])
    assert {state for task in innocent for state in states(task).values()} == {"processed"}


def test_breaker_closes_when_no_step_waits_for_its_recovery():
    Policy.objects.filter(agent="greeter").update(breaker_calls=1, breaker_failures=1)
    task = new_task()
    (request,) = claimed()
    assert answered(request, "transient") == []
    outage = Alert.objects.get(fingerprint="gate/greeter")
    Gate.objects.filter(agent="greeter").update(probe_at=DatabaseNow())
    sweep(LEADER)
    due(task)
    sweep(LEADER)
    (probe,) = claimed()
    (last,) = answered(probe)
    sweep(LEADER)
    assert Gate.objects.get(agent="greeter").state == "recovering"
    assert answered(last) == []
    assert Gate.objects.get(agent="greeter").state == "recovering"
    sweep(LEADER)
    assert Gate.objects.get(agent="greeter").state == "closed"
    outage.refresh_from_db()
    assert outage.closed_at is not None


def test_failures_are_taken_in_batches(monkeypatch):
    monkeypatch.setattr(conf, "BATCH_SIZE", 3)
    tasks = [new_task() for _ in range(8)]
    while claimed():
        pass
    for task in tasks:
        expire(task)
    assert str(sweep(LEADER)) == "8 retried"


def test_reply_between_deadline_and_sweep_is_accepted():
    """Until the attempt is counted, no other instance has the step (decision 34)."""
    task = new_task()
    (request,) = claimed()
    expire(task)
    assert record([reply_to(request)]).accepted == 1
    assert str(sweep(LEADER)) == ""
    step = step_of(task)
    assert (step.process_state, step.failure_count, step.in_doubt) == ("processed", 0, False)
    assert list(Attempt.objects.values_list("number", "outcome")) == [(1, "done")]


def test_late_reply_after_the_retry_is_refused():
    task = new_task()
    (request,) = claimed()
    expire(task)
    sweep(LEADER)
    assert record([reply_to(request)]).accepted == 0
    step = step_of(task)
    assert (step.process_state, step.failure_count) == ("pending", 1)
    assert list(Attempt.objects.values_list("number", "outcome")) == [(1, "expired")]
    assert Event.objects.filter(kind="refused").exists()


def test_overdue_task_is_reported_once_and_continues():
    task = new_task()
    Task.objects.filter(id=task.id).update(complete_by=DatabaseNow())
    assert str(sweep(LEADER)) == "1 overdue"
    assert str(sweep(LEADER)) == ""
    alert = Alert.objects.get(closed_at=None)
    assert alert.fingerprint == "overdue/greet"
    run_to_end(task)
    assert task.state == "processed"
    sweep(LEADER)
    alert.refresh_from_db()
    assert alert.closed_at is not None


def test_task_overdue_again_after_an_error_is_reported_again():
    task = new_task()
    Task.objects.filter(id=task.id).update(complete_by=DatabaseNow())
    sweep(LEADER)
    step = in_error(task)
    sweep(LEADER)
    resubmit(step.id, attempt=step.attempt, actor="olga", reason="mended")
    assert str(sweep(LEADER)) == "1 overdue"
    assert Alert.objects.get(closed_at=None).fingerprint == "overdue/greet"


class TestDoorbells:
    def rings(self, name):
        return bool(queues.connection().exists(queues.flag(name)))

    def test_supervisor_rings_for_due_and_unserved_work(self):
        new_task()
        Submission.objects.create(workflow="greet", reference="1", data={"name": "Ada"})
        Submission.objects.update(created_at=DatabaseNow() - timedelta(seconds=5))
        sweep(LEADER)
        assert self.rings(queues.SCHEDULER)
        assert self.rings(queues.SUBMISSION)

    def test_missing_queue_stops_no_other(self):
        new_task(reply_to="nobody")
        StatusMessage.objects.update(created_at=DatabaseNow() - timedelta(seconds=5))
        new_task()
        sweep(LEADER)
        assert self.rings(queues.SCHEDULER)

    def test_supervisor_rings_for_nothing_else(self):
        task = new_task()
        run_to_end(task)
        in_error()
        sweep(LEADER)
        assert not self.rings(queues.SCHEDULER)
        assert not self.rings(queues.SUBMISSION)

    def test_ringing_doorbell_is_not_rung_twice(self):
        queues.ring(queues.SCHEDULER)
        queues.ring(queues.SCHEDULER)
        assert len(queues.queue(queues.SCHEDULER)) == 1
        queues.clear_doorbell(queues.SCHEDULER)
        queues.ring(queues.SCHEDULER)
        assert len(queues.queue(queues.SCHEDULER)) == 2


class TestLeadership:
    def test_one_supervisor_leads_and_stays_leader(self):
        first = leader_election.acquire("a")
        assert first is not None
        assert leader_election.acquire("b") is None
        again = leader_election.acquire("a")
        assert again is not None
        assert again.epoch == first.epoch

    def test_another_leads_in_a_new_epoch_once_the_lease_has_expired(self):
        first = leader_election.acquire("a")
        Lease.objects.update(expires_at=DatabaseNow())
        second = leader_election.acquire("b")
        assert first is not None
        assert second is not None
        assert second.epoch == first.epoch + 1
        assert leader_election.acquire("a") is None

    def test_resigned_leader_is_not_waited_for(self):
        leader_election.acquire("a")
        leader_election.resign("b")  # not the holder: no effect
        assert leader_election.acquire("b") is None
        leader_election.resign("a")
        assert leader_election.acquire("b") is not None

    def test_supervisor_that_does_not_lead_does_not_sweep(self):
        task = new_task()
        claimed()
        expire(task)
        leader_election.acquire("another")
        watch = watch_of("me")
        assert watch.step(0.0) == conf.LEASE_S / 3
        assert step_of(task).process_state == "processing"
        Lease.objects.update(expires_at=DatabaseNow())
        watch.step(1.0)
        assert step_of(task).process_state == "pending"

    def test_sweep_interval_is_set_in_the_admin(self):
        from orchestration.models import SupervisorPolicy

        SupervisorPolicy.objects.update(interval=30)
        watch = watch_of("me")
        watch.step(0.0)
        task = new_task()
        claimed()
        expire(task)
        assert watch.step(2.0) == conf.LEASE_S / 3  # renews the lease, no sweep yet
        assert step_of(task).process_state == "processing"
        SupervisorPolicy.objects.update(interval=1)
        watch.step(4.0)  # a shorter interval holds from now on
        watch.step(5.0)
        assert step_of(task).process_state == "pending"

    def test_two_self_declared_leaders_count_once(self):
        task = new_task()
        claimed()
        expire(task)
        sweep(LEADER)
        sweep(Leadership(holder="supervisor-2", epoch=4))
        assert step_of(task).failure_count == 1


def test_step_past_the_threshold_may_restart_after_an_extended_wait():
    """P11: the retries are held off for long, in the hope that the fault is over by then."""
    Policy.objects.filter(agent="greeter").update(
        past_threshold="wait",
        failure_threshold=2,
        extended_wait=600,
        max_extended_waits=1,
        backoff=1,
    )
    task = new_task()
    for _ in range(2):
        claimed()
        expire(task)
        sweep(LEADER, half)
        step = Step.objects.annotate(wait=F("run_after") - DatabaseNow()).get(id=step_of(task).id)
        due(task) if step.extended_waits == 0 else None
        sweep(LEADER)
    assert (step.process_state, step.failure_count, step.extended_waits) == ("pending", 0, 1)
    assert step.wait.total_seconds() == pytest.approx(630, abs=5)  # 600, and half of a tenth more
    waits = Event.objects.get(step=step, kind="waits")
    assert waits.reason == "extended wait 1: again in 630 s"
    assert not Alert.objects.filter(closed_at=None).exists()
    assert claimed() == []  # however often it is looked at meanwhile
    for _ in range(2):
        due(task)
        sweep(LEADER)
        assert len(claimed()) == 1
        expire(task)
        sweep(LEADER, half)
    step = step_of(task)
    assert (step.process_state, step.extended_waits) == ("error", 1)  # there is one round
    assert Alert.objects.get(closed_at=None).id == step.alert_id
