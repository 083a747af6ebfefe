"""Code that blocks an agent's event loop is named, and what it delays is not held against the service."""

import asyncio
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from types import SimpleNamespace

import pytest
from django.db.models import F

from drill.waiting import wait_for
from orchestration import conf, registry
from orchestration.agents.loop_watch import LOCKED, Blocked
from orchestration.agents.runner import Runtime
from orchestration.alerting import runbook
from orchestration.api import Agent, action
from orchestration.database import clock
from orchestration.messaging import queues
from orchestration.messaging.messages import Reply
from orchestration.models import Alert
from orchestration.monitoring import monitors
from orchestration.states import Health
from orchestration.workers import jobs
from tests.support.messages import request

pytestmark = pytest.mark.django_db
NAME = "stuck"


class Stuck(Agent):
    name = NAME

    def __init__(self, instance="stuck-1"):
        super().__init__(instance)
        self.entered, self.released = threading.Event(), threading.Event()
        self.patient = threading.Event()

    @action
    async def block(self, call):
        self.entered.set()
        self.released.wait(60)
        return {}

    @action
    async def wait(self, call):
        self.patient.set()
        await asyncio.Event().wait()

    @action
    async def search(self, call):
        re.match("(a+)+$", "a" * 22 + "b")
        return {}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(conf, "LOOP_BEAT_S", 0.01)
    monkeypatch.setattr(conf, "LOOP_BLOCKED_AFTER_S", 0.05)
    monkeypatch.setitem(registry.agents, NAME, Stuck)


@contextmanager
def at_work():
    reports = []
    agent = Stuck()
    runtime = Runtime(agent, reports.append)
    serving = threading.Thread(target=runtime.serve)
    serving.start()
    try:
        yield SimpleNamespace(agent=agent, reports=reports, watch=runtime.watch)
    finally:
        agent.released.set()
        runtime.stop()
        serving.join(20)
        runtime.close()
        assert not serving.is_alive()


def post(*actions, timeout=60.0, first=1):
    fields = {"complete_by": clock.now() + 60, "call_timeout": timeout, "tries": 1}
    queues.ring(
        NAME,
        [
            request(step=step, action=name, **fields).dump()
            for step, name in enumerate(actions, start=first)
        ],
    )


def replies():
    raw = queues.connection().lrange(queues.inbox(queues.SCHEDULER), 0, -1)
    return {reply.step: reply for reply in map(Reply.parse, raw)}


def test_action_that_blocks_is_named_with_its_line(caplog):
    post("block")
    with at_work() as worker:
        wait_for(lambda: worker.watch.during(0), "it is noticed")
        worker.agent.released.set()
        wait_for(lambda: worker.reports, "it is over")
        wait_for(replies, "the call has its result all the same")
    (blocked,) = worker.reports
    assert (blocked.agent, blocked.action) == (NAME, "block")
    assert re.fullmatch(
        r"at agents/test_loop_watch.py:\d+: self.released.wait\(60\)", blocked.where
    )
    (record,) = [record for record in caplog.records if record.name.endswith("loop_watch")]
    assert record.step == request(step=1).name
    assert "in block" in record.getMessage()


def test_block_that_lasts_is_reported_before_it_ends(monkeypatch):
    monkeypatch.setattr(conf, "LOOP_BLOCKED_LONG_S", 0.1)
    post("block")
    with at_work() as worker:
        wait_for(lambda: worker.reports, "it is noticed while it lasts")
        assert not worker.agent.released.is_set()
        assert worker.reports[0].until is None
        assert " so far, " in str(worker.reports[0])
    wait_for(lambda: len(worker.reports) == 2, "it is noticed that it is over")
    assert worker.reports[1].until is not None


def test_calls_that_it_delays_say_nothing_of_the_service():
    post("wait", "block", timeout=0.2)
    with at_work() as worker:
        assert worker.agent.patient.wait(20)
        assert worker.agent.entered.wait(20)
        began = time.monotonic()
        wait_for(lambda: time.monotonic() > began + 0.4, "the other call's time is over")
        worker.agent.released.set()
        wait_for(lambda: len(replies()) == 2, "both are answered")
    delayed, blocking = replies()[1], replies()[2]
    assert (delayed.code, delayed.outcome, delayed.health) == (
        "loop_blocked",
        "unknown",
        Health.NOTHING,
    )
    assert delayed.message.startswith(f"{NAME}.block blocked the event loop")
    assert blocking.outcome == "done"


def test_call_that_times_out_by_itself_has_its_own_code(monkeypatch):
    monkeypatch.setattr(conf, "LOOP_BLOCKED_AFTER_S", 5.0)  # a busy machine blocks no loop so long
    post("wait", timeout=0.05)
    with at_work() as worker:
        wait_for(replies, "it is answered")
    assert replies()[1].code == "timeout"
    assert worker.reports == []


def test_code_that_holds_the_interpreters_lock_is_noticed():
    numbers = count(1)
    with at_work() as worker:
        # one that begins before the watch does is not seen
        wait_for(
            lambda: worker.reports or post("search", first=next(numbers)),
            "it is noticed",
            pause=0.5,
        )
    assert worker.reports[0].where == LOCKED


STOPPED = """
import asyncio, sys, threading
from django.conf import settings
settings.configure()
from orchestration import conf
conf.LOOP_BEAT_S, conf.LOOP_BLOCKED_AFTER_S = 0.01, 0.2
from orchestration.agents.loop_watch import LoopWatch

async def main():
    watch = LoopWatch("x", lambda task: None, lambda blocked: print(blocked))
    beat = asyncio.create_task(watch.beat())
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.sleep(0.1)
    print("end", flush=True)

asyncio.run(main())
"""


def test_process_that_was_stopped_is_not_taken_for_blocked():
    running = subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with running:
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        wait_for(lambda: time.monotonic() > began + 0.5, "it has been silent for long")
        running.send_signal(signal.SIGCONT)
        rest, _ = running.communicate("go on\n", timeout=20)
    assert rest == "end\n"


@pytest.mark.django_db(transaction=True)
def test_alert_names_the_action_and_closes_after_a_while(monkeypatch):
    monkeypatch.setattr(jobs, "_alerted", type(jobs._alerted)())
    for end in (2.0, 5.0):
        jobs._alert_about_blocked(
            Blocked(
                agent=NAME, request=request(action="block"), where="at a.py:1: sleep(1)", stack="",
                since=1.0, until=end,
            )
        )  # fmt: skip
    alert = Alert.objects.get()
    assert alert.fingerprint == f"blocked_loop/{NAME}/block"
    assert runbook.anchor(alert.fingerprint) == "loop-blocked"
    assert "for 1.0 s, at a.py:1: sleep(1)" in alert.detail  # the second came too soon after
    monitors.look(monitors.Debounce())
    assert Alert.objects.filter(closed_at=None, fingerprint=alert.fingerprint).exists()
    Alert.objects.update(last_seen=F("last_seen") - timedelta(seconds=conf.LOOP_ALERT_LIFE_S + 1))
    monitors.look(monitors.Debounce())
    assert not Alert.objects.filter(closed_at=None, fingerprint=alert.fingerprint).exists()
