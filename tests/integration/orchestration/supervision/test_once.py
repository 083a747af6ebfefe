"""Supervisors and housekeepers that a schedule starts, a process for each sweep (P3, P4)."""

import os
import re
import subprocess
import sys
from datetime import timedelta

import pytest

from orchestration import conf
from orchestration.cluster import leader_election
from orchestration.cluster.debounce import Debounce
from orchestration.messaging import queues
from orchestration.models import Alert, ClockJump, Lease, Step, SupervisorPolicy, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.workers import leader_monitor
from tests.support.engine import claimed, new_task, reply_to, staff, step_of, watch_of
from tests.support.together import database_url

pytestmark = pytest.mark.django_db
HOUR = 3600.0
LOADED_BY_OTHERS = re.compile(
    r"orders\.(workflow|agents|submission|status|views|audit)\b|(orchestration\.("
    r"agents|registry|workflow|messages|jobs|operations|scheduler|queries|vigil|housekeeping|admin|views"
    r"|checks|canary)\b).*"
)


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()
    Worker.objects.update(started_at=DatabaseNow() - timedelta(hours=1))


def once(name="supervisor", me="scheduled"):
    """Sweep as a process does that a schedule has started."""
    return watch_of(me, name).once()


def expired(seconds=1):
    task = new_task()
    claimed()
    expire(seconds)
    return task


def expire(seconds=1):
    Step.objects.filter(process_state="processing").update(
        complete_by=DatabaseNow() - timedelta(seconds=seconds)
    )


def state(task):
    return step_of(task).process_state


def test_once_sweeps_once_and_resigns():
    task = expired()
    assert once() is True
    assert state(task) == "pending"
    lease = Lease.objects.get(name="supervisor")
    assert lease.swept_at
    assert lease.expires_at < lease.next_sweep_due
    assert leader_election.acquire("another") is not None


def test_once_does_nothing_while_another_leads():
    task = expired()
    leader_election.acquire("resident")
    assert once() is False
    assert state(task) == "processing"
    assert Lease.objects.get(name="supervisor").holder == "resident"


def test_housekeeper_may_run_on_a_schedule():
    assert once("housekeeper") is True
    assert once("housekeeper", "scheduled-2") is True
    assert Lease.objects.get(name="housekeeper").epoch == 2


def test_scheduled_supervisor_is_missed_when_no_other_starts():
    SupervisorPolicy.objects.update(interval=60)
    once()
    assert leader_monitor.look("supervisor", Debounce(), patience=0) is True
    Lease.objects.update(next_sweep_due=DatabaseNow() + timedelta(seconds=590))
    assert leader_monitor.look("supervisor", Debounce(), patience=0) is True  # ten intervals
    Lease.objects.update(next_sweep_due=DatabaseNow())
    assert leader_monitor.look("supervisor", Debounce(), patience=0) is False
    alert = Alert.objects.get(closed_at=None)
    assert alert.title == "No supervisor leads"
    once()
    assert not Alert.objects.filter(closed_at=None).exists()


def test_resident_supervisor_is_not_awaited_like_a_scheduled_one():
    once()
    watch_of("resident").step(0.0)
    assert Lease.objects.get(name="supervisor").next_sweep_due is None


@pytest.mark.parametrize("remembers", [True, False])
def test_replies_unread_between_two_sweeps_are_awaited(remembers):
    """Without what the sweep before has left, silence would be taken for a failure."""
    task = new_task()
    (request,) = claimed()
    queues.ring(queues.SCHEDULER, [reply_to(request).dump()])
    once()
    if not remembers:
        Lease.objects.update(memory={})
    expire()
    once()
    assert state(task) == ("processing" if remembers else "pending")
    expire(conf.UNREAD_ALLOWANCE_S + 1)
    once()
    assert state(task) == "pending"


@pytest.mark.parametrize("same_machine", [True, False])
def test_clock_jump_between_two_sweeps_ends_nothing(same_machine):
    task = new_task()
    claimed()
    once()
    lease = Lease.objects.get(name="supervisor")
    lease.memory["clock"]["base"] = [lead - HOUR for lead in lease.memory["clock"]["base"]]
    if not same_machine:
        lease.memory["clock"]["boot"] = "another's"
    lease.save()
    expire()  # as the deadline is, by the clock after the jump
    once()
    assert state(task) == ("processing" if same_machine else "pending")
    assert ClockJump.objects.count() == same_machine


def test_queue_without_a_worker_since_the_last_sweep_is_an_alert():
    Worker.objects.filter(queue="greeter").delete()
    once("housekeeper")
    assert not Alert.objects.filter(fingerprint="system/no_worker/greeter").exists()
    lease = Lease.objects.get(name="housekeeper")
    for queue in lease.memory["absent"]:
        lease.memory["absent"][queue] -= 60
    lease.save()
    once("housekeeper")
    assert Alert.objects.get(fingerprint="system/no_worker/greeter").closed_at is None


# Runs manage.py, and prints what is loaded when the process ends: it ends at once.
WATCHED = """
import os, runpy, sys
end = os._exit
def ended(code):
    print("loaded:", *sorted(sys.modules), flush=True)
    end(code)
os._exit = ended
runpy.run_path("manage.py", run_name="__main__")
"""


def command(name, url):
    """Run the real command in a process of its own."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "sasweb.settings", "SECRET_KEY": "x"}
    return subprocess.run(
        [sys.executable, "-c", WATCHED, name, "--once"],
        env={**environment, "DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def loaded(done):
    """Return the modules that a process had loaded when it ended."""
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("loaded:")]
    return set(line.split()[1:])


@pytest.mark.django_db(transaction=True)
def test_supervisor_process_loads_no_workflow_and_no_agent():
    task = expired()
    done = command("supervisor", database_url())
    assert done.returncode == 0, done.stderr[-2000:]
    assert state(task) == "pending"
    modules = loaded(done)
    assert "orchestration.supervisor" in modules
    assert [module for module in sorted(modules) if LOADED_BY_OTHERS.match(module)] == []


@pytest.mark.django_db(transaction=True)
def test_housekeeper_process_loads_workflows():
    done = command("housekeeper", database_url())
    assert done.returncode == 0, done.stderr[-2000:]
    assert {"orders.workflow", "orchestration.operations"} <= loaded(done)
    assert Lease.objects.get(name="housekeeper").swept_at


def test_failure_is_a_sentence_and_exit_code_1(tmp_path):
    done = command("supervisor", f"postgresql://no-one@/none?host={tmp_path}")
    assert done.returncode == 1
    (message,) = [line for line in done.stderr.splitlines() if line.startswith("CommandError")]
    assert message.startswith("CommandError: the sweep failed: OperationalError: ")
