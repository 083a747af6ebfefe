"""One process that serves several queues: each as if it had a process to itself (U1)."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import django_rq
import pytest
from django.core.management import CommandError, call_command

from drill.waiting import wait_for
from orchestration import conf
from orchestration.cluster import instance
from orchestration.messaging import queue_names, queues
from orchestration.models import Step, Worker
from orchestration.workers import jobs
from orchestration.workers import worker as workers_worker
from tests.support.engine import new_task, step_of
from tests.support.receiver import receiving
from tests.support.together import database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]
HOSTED = ("submission", "scheduler", "greeter")
MANAGE = (sys.executable, "manage.py")


@contextmanager
def process(*command, **environment):
    """Run a process on the tests' database and Redis."""
    known = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    with subprocess.Popen(
        command, env={**known, "DATABASE_URL": database_url(), **environment}
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def serves(*names):
    """Wait until workers of these queues, and no others, have reported themselves; return them."""

    def seen():
        workers = {worker.queue: worker for worker in Worker.objects.all()}
        return workers if workers.keys() == set(names) else None

    return wait_for(seen, f"{names} are served")


def answered(running, seconds=15):
    """Return the exit code of a process that ends by itself."""
    return running.wait(seconds)


class TestOneProcess:
    def test_counts_as_an_instance_of_each_queue(self):
        with process(*MANAGE, "work", *HOSTED, "greeter") as running:
            workers = serves(*HOSTED)
            assert {worker.pid for worker in workers.values()} == {running.pid}
            ends = {worker.instance.rpartition("@")[2] for worker in workers.values()}
            assert len(ends) == 1
            assert {worker.instance.split("@")[0] for worker in workers.values()} == set(HOSTED)

    def test_claims_while_its_agent_waits_and_ends_with_what_is_at_hand(self):
        answers = threading.Event()
        with (
            receiving() as service,
            process(*MANAGE, "work", *HOSTED, SANDBOX_PORT=str(service.port)) as running,
        ):
            service.meanwhile = lambda: answers.wait(20)
            me = serves(*HOSTED)
            slow = new_task()
            queues.ring(queues.SCHEDULER)
            wait_for(lambda: service.got, "the agent has called its service")
            held = queues.held_by(me["greeter"].instance)
            assert held == {step_of(slow).id: 1}
            next_one = new_task()
            queues.ring(queues.SCHEDULER)
            wait_for(lambda: step_of(next_one).locked_by, "the scheduler claims meanwhile")
            assert step_of(next_one).locked_by == me["scheduler"].instance

            running.send_signal(signal.SIGTERM)
            wait_for(
                lambda: not queues.connection().exists(queues.flag("greeter")), "one has ended"
            )
            wait_for(lambda: queues.queue(queues.SCHEDULER).count, "the other calls for another")
            third = new_task()
            queues.connection().delete(queues.flag(queues.SCHEDULER))
            queues.ring(queues.SCHEDULER)
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(0.5)  # it finishes its call
            answers.set()
            assert answered(running) == 0
            assert step_of(third).process_state == "pending"
            replies = [raw for raw in queues.take(queues.SCHEDULER, 10) if raw != queues.LOOK]
            assert replies  # what was at hand has come to its end
            assert queues.held_by(me["greeter"].instance) == {}
            assert not Worker.objects.exists()

    def test_ends_with_an_error_when_one_of_its_threads_does(self):
        with process(
            sys.executable, "-m", "tests.integration.orchestration.workers.host", *HOSTED
        ) as running:
            serves(*HOSTED)
            new_task()
            queues.ring(queues.SCHEDULER)
            assert answered(running) == 1

    def test_serves_every_queue_and_ends_at_once_when_it_is_idle(self):
        with process(*MANAGE, "work", "--all") as running:
            serves(*queue_names.declared())
            running.send_signal(signal.SIGTERM)
            assert answered(running, 5) == 0
            assert not Worker.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["schedular"], "there is no queue 'schedular'; did you mean 'scheduler'?"),
        (["scheduler", "paymnt"], "there is no queue 'paymnt'; did you mean 'payment'?"),
        ([], "name the queues to serve, or give --all and no name"),
        (["scheduler", "--all"], "name the queues to serve, or give --all and no name"),
        (["scheduler", "--but", "audit"], "--but leaves queues out of --all: give that as well"),
        (["--all", "--but", "audt"], "there is no queue 'audt'; did you mean 'audit'?"),
        (["--all", "--but", *queue_names.declared()], "--but leaves no queue to serve"),
    ],
)
def test_invalid_configuration_is_refused_before_the_start(arguments, words):
    with pytest.raises(CommandError, match=words.replace("?", r"\?")):
        call_command("work", *arguments)
    assert not Worker.objects.exists()


def test_all_but_some_queues_are_served(monkeypatch):
    served = []
    monkeypatch.setattr(workers_worker, "run", served.extend)
    monkeypatch.setattr(instance, "end", lambda *_: None)
    call_command("work", "--all", "--but", "scheduler", "audit")
    assert sorted(served) == sorted({*queue_names.declared()} - {"scheduler", "audit"})


def test_late_doorbell_rings_another_worker(monkeypatch):
    """A worker that waits for one while its process finishes other work begins nothing."""
    monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.05)
    client = queues.worker_connection()
    new_task()
    queues.ring(queues.SCHEDULER)
    worker = workers_worker.QueueWorker(queues.queue(queues.SCHEDULER, client))
    with worker.busy:
        worker.serve(burst=True)
    client.close()
    assert len(queues.queue(queues.SCHEDULER)) == 1
    assert Step.objects.filter(process_state="processing").count() == 0
    assert not jobs.stopping()


class TestTheCommandsOfRQ:
    """They precede our `work` in every guide to RQ, and would run any job of a queue."""

    @pytest.mark.parametrize(
        ("arguments", "served"),
        [
            (["rqworker", "scheduler"], "scheduler"),
            (["rqworker", "reports", "payment", "scheduler"], "scheduler payment"),
            (["rqworker-pool", "status.shop"], "status.shop"),
            (["rqscheduler", "--queue", "greeter"], "greeter"),
        ],
    )
    def test_are_refused_on_the_engines_queues(self, arguments, served):
        ended = subprocess.run(
            [*MANAGE, *arguments],
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
            check=False,
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 1
        (sentence,) = ended.stderr.splitlines()
        assert sentence.endswith(f"the engine's own: manage.py work {served}")

    def test_serve_the_queues_of_others(self, settings):
        settings.RQ_QUEUES = {"reports": {"URL": settings.REDIS_URL}}
        queue = django_rq.get_queue("reports", serializer="rq.serializers.JSONSerializer")
        job = queue.enqueue_call("os.getcwd")
        before = {number: signal.getsignal(number) for number in workers_worker.SIGNALS}
        serializer = "rq.serializers.JSONSerializer"
        try:
            call_command("rqworker", "reports", burst=True, serializer=serializer)
        finally:
            for number, handler in before.items():  # RQ's own would outlive it
                signal.signal(number, handler)
        assert job.return_value() == os.getcwd()  # noqa: PTH109 - as the job has it
