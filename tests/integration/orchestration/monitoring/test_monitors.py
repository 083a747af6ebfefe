"""Alerts about the machinery itself: each opens when something lasts, and closes when it is over."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import F

from orchestration import conf, registry, supervisor
from orchestration.cluster import leader_election
from orchestration.cluster.debounce import Debounce
from orchestration.database import clock
from orchestration.models import (
    Alert,
    Gate,
    Hold,
    Lease,
    Notification,
    NotificationChannel,
    StatusMessage,
    Step,
    SupervisorPolicy,
    Task,
    Worker,
)
from orchestration.models.fields import DatabaseNow
from orchestration.monitoring import monitors
from orchestration.monitoring.clocks import CLOCK
from orchestration.monitoring.monitors import look
from orchestration.waiting.undeclared import undeclared_agents
from orchestration.workers import leader_monitor

pytestmark = pytest.mark.django_db
LONG = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _staffed():
    for queue in monitors.unserved():
        Worker.objects.create(instance=f"{queue}-1", queue=queue, host="h", pid=1)
    leadership = leader_election.acquire("supervisor-1")
    assert leadership is not None
    leader_election.note_sweep(leadership, "")


def troubles():
    """Look once; return what is open."""
    look(Debounce())
    opened = Alert.objects.filter(closed_at=None).order_by("fingerprint")
    return list(opened.values_list("fingerprint", flat=True))


def task(**fields):
    known = {"workflow": "greet", "reference": uuid4().hex, "data": {}}
    return Task.objects.create(**known | {"complete_by": DatabaseNow() + LONG} | fields)


def waiting_step(*, since=LONG, **fields):
    known = {
        "name": "hello", "agent": "greeter", "action": "greet", "request": {},
        "process_state": "pending", "pending_since": DatabaseNow() - since,
    }  # fmt: skip
    return Step.objects.create(task=task(), **known | fields)


def test_healthy_system_has_no_alert():
    waiting_step(since=timedelta(seconds=1))
    assert troubles() == []


class TestWorkers:
    def test_queue_without_a_worker_raises_an_alert_after_a_delay(self):
        absent = Debounce()
        Worker.objects.filter(queue="greeter").update(
            seen_at=DatabaseNow() - timedelta(seconds=conf.WORKER_DEAD_AFTER_S + 1)
        )
        assert look(absent) == 0  # it may be about to start
        assert look(absent, patience=0) == 1
        alert = Alert.objects.get(closed_at=None)
        assert alert.fingerprint == "system/no_worker/greeter"
        Worker.objects.update(seen_at=DatabaseNow())
        assert look(absent, patience=0) == 0
        assert not Alert.objects.filter(closed_at=None).exists()

    def test_worker_seen_in_between_restarts_the_delay(self, monkeypatch):
        times = iter([0.0, 6.0, 12.0, 18.0, 24.0])
        monkeypatch.setattr("orchestration.database.clock.steady", lambda: next(times))
        absent = Debounce()
        assert absent.persisting({"a"}, 10) == set()
        assert absent.persisting({"a", "b"}, 10) == set()
        assert absent.persisting({"a"}, 10) == {"a"}
        assert absent.persisting(set(), 10) == set()
        assert absent.persisting({"a", "b"}, 10) == set()


class TestLeader:
    def test_missing_leader_is_reported_until_the_next_leader(self):
        absent = Debounce()
        Lease.objects.update(expires_at=DatabaseNow())
        assert leader_monitor.look("supervisor", absent) is False
        assert not Alert.objects.exists()  # another one may be about to take over
        for _ in range(3):
            leader_monitor.look("supervisor", absent, patience=0)
        alert = Alert.objects.get()
        assert (alert.fingerprint, alert.count, alert.closed_at) == (
            "system/supervisor/no_leader",
            1,
            None,
        )
        supervisor.sweep(leader_election.acquire("supervisor-2"))
        assert not Alert.objects.filter(closed_at=None).exists()

    def test_impossibly_long_lease_counts_as_no_leader(self):
        """Its holder died before the database's clock went back."""
        Lease.objects.update(expires_at=DatabaseNow() + LONG)
        assert leader_monitor.look("supervisor", Debounce(), patience=0) is False

    def test_other_process_sees_the_leader(self):
        absent = Debounce()
        Lease.objects.update(expires_at=DatabaseNow())
        leader_monitor.look("supervisor", absent, patience=0)
        leader_election.acquire("supervisor-2")
        assert leader_monitor.look("supervisor", absent, patience=0) is True
        assert not Alert.objects.filter(closed_at=None).exists()

    @pytest.mark.parametrize("seconds", [-31, 31])  # ahead: the clock went back since
    def test_leader_without_a_finished_sweep_raises_an_alert(self, seconds):
        absent = Debounce()
        Lease.objects.update(swept_at=DatabaseNow() + timedelta(seconds=seconds))
        assert leader_monitor.look("supervisor", absent) is True
        assert not Alert.objects.exists()  # it may have begun just now
        for _ in range(3):
            leader_monitor.look("supervisor", absent, patience=0)
        alert = Alert.objects.get()
        assert (alert.fingerprint, alert.count, alert.closed_at) == (
            "system/supervisor/not_swept",
            1,
            None,
        )
        Lease.objects.update(swept_at=DatabaseNow())
        leader_monitor.look("supervisor", absent, patience=0)
        assert not Alert.objects.filter(closed_at=None).exists()

    def test_sweep_may_take_ten_intervals(self):
        SupervisorPolicy.objects.update(interval=20)
        Lease.objects.update(swept_at=DatabaseNow() - timedelta(seconds=190))
        leader_monitor.look("supervisor", Debounce(), patience=0)
        assert not Alert.objects.exists()
        Lease.objects.update(swept_at=DatabaseNow() - timedelta(seconds=210))
        leader_monitor.look("supervisor", Debounce(), patience=0)
        assert Alert.objects.get().fingerprint == "system/supervisor/not_swept"


class TestWaiting:
    def test_step_that_waits_too_long_for_its_claim_raises_an_alert(self):
        step = waiting_step()
        assert troubles() == ["system/waiting/greeter"]
        Step.objects.filter(id=step.id).update(pending_since=DatabaseNow())
        assert troubles() == []

    def test_alert_keeps_the_reason_that_was_noticed_first(self):
        waiting_step()
        troubles()
        alert = Alert.objects.get()
        assert "When this was noticed, it " in alert.detail
        troubles()
        assert Alert.objects.get().detail == alert.detail

    def test_limit_is_set_in_the_admin(self):
        waiting_step(since=timedelta(seconds=20))
        assert troubles() == []
        SupervisorPolicy.objects.update(oldest_waiting=10)
        assert troubles() == ["system/waiting/greeter"]

    def test_retry_that_is_not_due_raises_no_alert(self):
        waiting_step(run_after=DatabaseNow() + LONG)
        assert troubles() == []

    @pytest.mark.parametrize("target", [{"scope": "all"}, {"scope": "agent", "agent": "greeter"}])
    def test_held_time_does_not_count_as_waiting(self, target):
        waiting_step()
        hold = Hold.objects.create(cause="hand", reason="r", actor="a", **target)
        assert troubles() == []
        Hold.objects.filter(id=hold.id).update(until=DatabaseNow())
        assert troubles() == []  # released just now
        Hold.objects.filter(id=hold.id).update(until=DatabaseNow() - LONG / 2)
        assert troubles() == ["system/waiting/greeter"]

    def test_held_step_raises_no_alert(self):
        hold = Hold.objects.create(
            scope="step", workflow="greet", step="hello", cause="hand", reason="r", actor="a"
        )
        waiting_step(held_by=hold)
        assert troubles() == []

    def test_hold_of_another_agent_does_not_excuse(self):
        Gate.objects.get_or_create(agent="other")
        waiting_step()
        Hold.objects.create(scope="agent", agent="other", cause="hand", reason="r", actor="a")
        assert troubles() == ["system/waiting/greeter"]


def test_stuck_undo_raises_an_alert():
    stuck = task(state="undoing", undo_at=DatabaseNow() - LONG)
    task(state="undoing", undo_at=DatabaseNow())
    assert troubles() == ["system/undo_stuck/greet"]
    assert Alert.objects.get().detail.startswith("When this was noticed: 1 tasks")
    Task.objects.filter(id=stuck.id).update(state="undone", ended_at=DatabaseNow())
    assert troubles() == []


def test_untaken_status_messages_raise_an_alert_per_application():
    old = task(reply_to="shop")
    for application, age in (
        ("shop", LONG),
        ("shop", timedelta()),
        ("b", timedelta()),
        ("z", LONG),
    ):
        StatusMessage.objects.create(
            task=old, reply_to=application, kind="received", number=StatusMessage.objects.count() + 1,
            created_at=DatabaseNow() - age,
        )  # fmt: skip
    assert troubles() == ["system/status_undelivered/shop", "system/status_undelivered/z"]
    StatusMessage.objects.filter(reply_to="shop").update(refused_at=DatabaseNow(), reason="bad")
    assert troubles() == ["system/status_undelivered/z"]  # that has an alert of its own
    StatusMessage.objects.all().delete()
    assert troubles() == []


def test_lasting_condition_is_one_alert_until_it_ends():
    NotificationChannel.objects.create(name="Ann", kind="email", address="ann@example.com")
    step = waiting_step()
    troubles()
    Alert.objects.update(last_seen=DatabaseNow() - LONG, first_seen=DatabaseNow() - LONG)
    for _ in range(3):
        troubles()
    alert = Alert.objects.get()
    assert alert.count == 1
    assert Alert.objects.filter(last_seen__gt=F("first_seen") + LONG / 2).exists()
    Step.objects.filter(id=step.id).delete()
    troubles()
    assert list(Notification.objects.order_by("id").values_list("kind", flat=True)) == [
        "opened",
        "closed",
    ]


def test_alerts_of_other_kinds_are_untouched():
    Alert.objects.create(fingerprint="step/greet/hello/x", severity="critical", title="t")
    assert troubles() == ["step/greet/hello/x"]


def test_queries_are_independent_of_the_number_of_waiting_steps(django_assert_num_queries):
    for _ in range(5):
        waiting_step()
    look(Debounce())
    Alert.objects.all().delete()
    with django_assert_num_queries(22):  # eight say why the oldest of all agents wait
        look(Debounce())
    with django_assert_num_queries(14):  # an alert says so
        look(Debounce())


class TestClocks:
    def off(self, seconds, **which):
        Worker.objects.filter(**which).update(clock_offset=seconds)

    def alerts(self, jump=None):
        look(Debounce(), jump=jump)
        opened = Alert.objects.filter(closed_at=None).order_by("fingerprint")
        return list(opened.values_list("fingerprint", "severity", "title"))

    @pytest.mark.parametrize(("seconds", "way"), [(300, "behind"), (-300, "ahead of")])
    def test_host_with_a_wrong_clock_raises_an_alert_until_corrected(self, seconds, way):
        Worker.objects.filter(queue="greeter").update(host="odd", clock_offset=seconds)
        title = f"The clock of odd is 300 s {way} the database's"
        assert self.alerts() == [("system/clock/odd", "warning", title)]
        self.off(20)
        assert self.alerts() == []

    def test_deviating_host_of_two_is_named(self):
        for host, queues in (("here", "ab"), ("odd", "cd")):
            for queue in queues:
                Worker.objects.create(instance=queue, queue=queue, host=host, pid=1)
        Worker.objects.exclude(host="odd").exclude(host="here").delete()
        self.off(-300, host="odd")
        clocks = [cause for cause, *_ in self.alerts() if cause.startswith(CLOCK)]
        assert clocks == ["system/clock/odd"]

    def test_hosts_that_deviate_alike_are_one_alert(self):
        self.off(300)
        Worker.objects.filter(queue="greeter").update(host="right", clock_offset=0)
        assert [cause for cause, *_ in self.alerts()] == ["system/clock/all", "system/clock/right"]
        self.off(300)
        title = "Most hosts' clock is 300 s behind the database's"
        assert self.alerts() == [("system/clock/all", "warning", title)]

    def test_jump_raises_only_its_own_alert(self):
        self.off(3600)
        jump = leader_election.Jump(seconds=3600, ago=100)
        assert [cause for cause, *_ in self.alerts(jump)] == ["system/clock_jumped"]
        jump = leader_election.Jump(seconds=3600, ago=conf.CLOCK_JUMP_ALERT_S + 1)
        assert [cause for cause, *_ in self.alerts(jump)] == ["system/clock/all"]

    def test_jump_during_a_sweep_makes_nothing_late(self):
        waiting_step(since=LONG)
        StatusMessage.objects.create(
            task=task(), reply_to="shop", kind="received", number=1,
            created_at=DatabaseNow() - LONG,
        )  # fmt: skip
        before_the_jump = clock.database_now() - LONG
        look(Debounce(), now=before_the_jump)
        assert not Alert.objects.exists()
        assert troubles() == ["system/status_undelivered/shop", "system/waiting/greeter"]


def test_steps_of_an_undeclared_agent_raise_an_alert():
    waiting_step(since=timedelta(seconds=1))
    waiting_step(since=timedelta(seconds=1), agent="forgotten")
    assert troubles() == ["system/undeclared/forgotten"]
    Step.objects.filter(agent="forgotten").update(process_state="cancelled")
    assert troubles() == []


def test_undeclared_agents_are_found_wherever_their_names_stand():
    declared = sorted(registry.agents)
    names = ["0", *(f"{name}{end}" for name in declared for end in ("0", "1")), "zzz"]
    for name in (*names, *declared):
        waiting_step(since=timedelta(seconds=1), agent=name)
    assert sorted(undeclared_agents(registry.agents)) == sorted(names)
    assert sorted(undeclared_agents([])) == sorted([*names, *declared])


def test_long_pause_that_a_service_asked_for_is_an_alert_until_it_ends():
    def paused_for(seconds):
        until = seconds and DatabaseNow() + timedelta(seconds=seconds)
        Gate.objects.filter(agent="greeter").update(paused_until=until)
        return troubles()

    assert paused_for(conf.PAUSE_ALERT_S - 10) == []
    assert paused_for(conf.PAUSE_ALERT_S + 10) == ["system/paused/greeter"]
    assert paused_for(10) == ["system/paused/greeter"]
    assert paused_for(-10) == []
    assert paused_for(None) == []
