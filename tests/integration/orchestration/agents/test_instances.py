"""An instance of an agent whose calls fail, beside others whose calls succeed (P2, P16)."""

import asyncio
import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta

import pytest

from drill.waiting import wait_for
from orchestration import conf
from orchestration.agents import outliers
from orchestration.agents.actions import action
from orchestration.agents.base import Agent
from orchestration.agents.errors import Transient
from orchestration.agents.runner import Runtime
from orchestration.cluster.debounce import Debounce
from orchestration.cluster.heartbeat import report
from orchestration.database import clock
from orchestration.decisions.recovery import INSTANCE_SICK
from orchestration.messaging import queues
from orchestration.messaging.messages import Reply
from orchestration.models import Alert, Event, Gate, Policy, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.monitoring import monitors
from orchestration.transitions.claim import claim
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to, staff, step_of, sweep
from tests.support.messages import left, request
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db
NAME = "greeter"


class Clerk(Agent):
    name = NAME
    slots = 4

    def __init__(self, instance):
        super().__init__(instance)
        self.broken = False
        self.free = threading.Event()
        self.free.set()
        self.calls = 0

    @action
    async def greet(self, call):
        self.calls += 1
        if not self.free.is_set():
            await asyncio.to_thread(self.free.wait)
        if self.broken:
            raise Transient("unreachable", "no route to the service")
        await asyncio.sleep(0.01)
        return {"id": "g1"}


@contextmanager
def at_work(*names):
    """Have workers serve the inbox, each in a thread, again and again as doorbells would have them."""
    clerks = [Clerk(name) for name in names]
    runtimes = [Runtime(clerk) for clerk in clerks]
    ended = threading.Event()

    def attend(runtime):
        while not ended.is_set():
            runtime.serve()

    threads = [threading.Thread(target=attend, args=[runtime]) for runtime in runtimes]
    try:
        for thread in threads:
            thread.start()
        yield clerks, runtimes
    finally:
        ended.set()
        for runtime in runtimes:
            runtime.stop()
        for thread in threads:
            thread.join(20)
        for runtime in runtimes:
            runtime.close()
        assert not any(thread.is_alive() for thread in threads)


class Load:
    """Requests that come all the time, each once, and the replies to them."""

    def __init__(self):
        self.sent = 0
        self.replies = []

    def send(self):
        self.sent += 1
        asked = request(step=self.sent, complete_by=time.time() + 60, call_timeout=30.0)
        queues.connection().rpush(queues.inbox(NAME), asked.dump())

    def until(self, condition, what):
        """Send requests until something is so, more than one worker takes: it would serve them alone."""

        def look():
            for _ in range(3 * Clerk.slots - left(NAME)):
                self.send()
            self.read()
            return condition()

        wait_for(look, what, 30)

    def read(self):
        raw = queues.take(queues.SCHEDULER, 1000)
        self.replies += [Reply.parse(message) for message in raw]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(outliers, "PAUSE", 0.5)
    monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.2)


@pytest.fixture
def set_clock(monkeypatch):
    """Return a function that sets the database's clock, as this process measured it, by some seconds."""
    monkeypatch.setattr(clock, "_measured", None)
    clock.measure()
    return lambda seconds: clock.follow(clock.ahead() + seconds)


def test_failing_instance_steps_back_and_returns_once_healthy():
    load = Load()
    with at_work("clerk-1", "clerk-2", "clerk-3") as ((sick, *well), (its, *others)):
        load.until(lambda: all(clerk.calls > 10 for clerk in (sick, *well)), "all have worked")
        sick.broken = True
        load.until(lambda: its.siblings.part.back_since, "it steps back")
        before, calls = sick.calls, [clerk.calls for clerk in well]
        load.until(
            lambda: all(clerk.calls > 50 + then for clerk, then in zip(well, calls, strict=True)),
            "others go on",
        )
        load.until(
            lambda: INSTANCE_SICK in {reply.code for reply in load.replies}, "it has failed again"
        )
        assert sick.calls - before <= Clerk.slots + 3  # what it had begun, and probes
        assert all(runtime.siblings.part.back_since is None for runtime in others)
        sick.broken = False
        load.until(lambda: its.siblings.part.back_since is None, "it takes part again")
        calls = sick.calls
        load.until(lambda: sick.calls > calls + 10, "it works again")
        wait_for(lambda: load.read() or len(load.replies) == load.sent, "all is answered", 20)
    assert Counter(reply.step for reply in load.replies) == Counter(range(1, load.sent + 1))
    failed = [reply for reply in load.replies if reply.outcome != "done"]
    assert {reply.by for reply in failed} == {"clerk-1"}
    marked = [reply for reply in failed if reply.code == INSTANCE_SICK]
    assert {(reply.health, reply.message) for reply in marked} == {
        ("nothing", "unreachable: no route to the service")
    }


def test_request_taken_too_late_does_not_count_as_a_failure():
    late = request(step=1, complete_by=time.time() - 1).dump()
    good = request(step=2, complete_by=time.time() + 60).dump()
    queues.connection().rpush(queues.inbox(NAME), late, good)
    with at_work("clerk-1") as (_, (runtime,)):
        wait_for(lambda: queues.take(queues.SCHEDULER, 1), "a reply is sent", 20)
        assert list(runtime.siblings.part.report(clock.now()).counts.values()) == [(1, 0)]


@pytest.mark.parametrize("seconds", [3600, 2])
def test_call_during_which_the_clock_was_set_does_not_count(set_clock, seconds):
    asked = request(step=1, complete_by=time.time() + 1.5)
    with at_work("clerk-1") as ((clerk,), (runtime,)):
        clerk.free.clear()
        queues.connection().rpush(queues.inbox(NAME), asked.dump())
        wait_for(lambda: clerk.calls, "the call is under way", 20)
        set_clock(seconds)
        clerk.free.set()
        good = request(step=2, complete_by=clock.now() + 60)
        queues.connection().rpush(queues.inbox(NAME), good.dump())
        wait_for(lambda: queues.take(queues.SCHEDULER, 1), "a reply is sent", 20)
        assert list(runtime.siblings.part.report(clock.now()).counts.values()) == [(1, 0)]


def test_instance_takes_part_again_when_the_clock_was_set_back(set_clock):
    load = Load()
    with at_work("clerk-1", "clerk-2") as ((sick, well), (its, _)):
        load.until(lambda: sick.calls > 10 and well.calls > 10, "both have worked")
        sick.broken = True
        load.until(lambda: its.siblings.part.back_since, "it steps back")
        sick.broken = False
        set_clock(-3600)
        load.until(lambda: its.siblings.part.back_since is None, "it takes part again")


def test_no_instance_steps_back_where_all_fail_alike():
    load = Load()
    with at_work("clerk-1", "clerk-2") as (clerks, runtimes):
        load.until(lambda: all(clerk.calls > 10 for clerk in clerks), "both have worked")
        for clerk in clerks:
            clerk.broken = True
        load.until(
            lambda: sum(reply.outcome != "done" for reply in load.replies) > 100, "many fail"
        )
        assert [runtime.siblings.part.back_since for runtime in runtimes] == [None, None]


def test_last_instance_continues_though_it_fails(monkeypatch):
    """What lies there is not left to workers that have gone; the gate hears of the failures."""
    monkeypatch.setattr(outliers, "PAUSE", 600.0)
    monkeypatch.setattr(outliers, "PAUSE_CAP", 600.0)
    load = Load()
    with at_work("clerk-1") as ((sick,), (its,)):
        with at_work("clerk-2") as ((well,), _):
            load.until(lambda: min(sick.calls, well.calls) > 10, "both have worked")
            sick.broken = True
            load.until(lambda: its.siblings.part.back_since, "it steps back")
        monkeypatch.setattr(conf, "WORKER_DEAD_AFTER_S", 0.5)
        load.until(lambda: its.siblings.part.back_since is None, "it takes part again")
        wait_for(lambda: not left(NAME), "all is taken", 20)
        wait_for(lambda: load.read() or len(load.replies) == load.sent, "all is answered", 20)
    assert [reply.code for reply in load.replies if reply.by == "clerk-1"][-1] == "unreachable"


def test_single_active_instance_rings_another_after_a_failure():
    """While there is little to do one worker attends, and its siblings wait for the doorbell."""
    load = Load()
    with at_work("clerk-1") as ((clerk,), _):
        for _ in range(6):  # one at a time: it would also ring if its slots were taken
            load.send()
            wait_for(lambda: load.read() or len(load.replies) == load.sent, "it is answered", 20)
        assert queues.queue(NAME).count == 0
        clerk.broken = True
        load.until(lambda: queues.queue(NAME).count, "another is called")


def test_failures_of_an_instance_do_not_count_for_step_or_service():
    Policy.objects.filter(agent=NAME).update(breaker_calls=1, breaker_failures=1)
    staff()
    task = new_task()
    for _ in range(10):  # more than its threshold
        (asked,) = claimed()
        recorded = record([reply_to(asked, "transient", code=INSTANCE_SICK, health="nothing")])
        assert claim([NAME], "scheduler-1", recorded.observed).requests == {}
        assert str(sweep(LEADER)) == "1 retried, 1 retries due"  # it is due at once
    step = step_of(task)
    assert (step.process_state, step.failure_count, step.own_trouble) == ("pending", 0, False)
    assert (step.run_after, step.attempt) == (None, 10)
    assert Gate.objects.get(agent=NAME).state == "closed"
    assert Event.objects.filter(kind="excused").count() == 10


def test_alert_is_open_while_an_instance_has_stepped_back():
    staff()
    report(NAME, stepped_back=lambda queue: time.time() - 60)
    worker = Worker.objects.exclude(stepped_back_at=None).get()
    monitors.look(Debounce())
    alert = Alert.objects.get(fingerprint=f"system/instance/{worker.instance}")
    assert (alert.severity, worker.instance in alert.title) == ("warning", True)
    assert str(worker.pid) in alert.detail
    report(NAME)
    monitors.look(Debounce())
    alert.refresh_from_db()
    assert alert.closed_at is not None


def test_alert_of_a_dead_instance_is_closed():
    staff()
    report(NAME, stepped_back=lambda queue: time.time())
    monitors.look(Debounce())
    Worker.objects.exclude(stepped_back_at=None).update(
        seen_at=DatabaseNow() - timedelta(seconds=conf.WORKER_DEAD_AFTER_S)
    )
    monitors.look(Debounce())
    assert not Alert.objects.filter(fingerprint__startswith="system/instance/", closed_at=None)
