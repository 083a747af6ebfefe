"""What arrives on Redis may be anything: refused with words, nothing changed, worker alive."""

import asyncio
import os
import signal
import threading

import django_rq
import pytest
from django.db import OperationalError, connection
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq.job import Job
from rq.serializers import DefaultSerializer

from drill.waiting import wait_for
from orchestration import conf
from orchestration.database import clock
from orchestration.messaging import queues
from orchestration.messaging.agent_inbox import AgentInbox, PendingMessage, Taken
from orchestration.messaging.messages import Reply, Request
from orchestration.models import Step, Task
from orchestration.workers import jobs, worker
from tests.support.database import read_only, writes_fail
from tests.support.engine import claimed, new_task, reply_to, states
from tests.support.serving import serve

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _short_attendance(monkeypatch):
    monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.05)


def snapshot():
    return sorted(Step.objects.values_list("id", "process_state", "attempt", "failure_count"))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("os.system", ["touch /tmp/never"]),
        ("orchestration.workers.jobs.call_agent", ["greeter"]),  # right function, wrong queue
        ("orchestration.workers.jobs.schedule", ["unexpected"]),  # right function, other arguments
        ("subprocess.run", []),
        ("nothing.at.all", []),
    ],
)
def test_job_off_the_allow_list_is_refused(caplog, function, arguments):
    new_task()
    before = snapshot()
    queue = queues.queue(queues.SCHEDULER)
    queue.enqueue_call(function, args=arguments)
    serve(queues.SCHEDULER)
    assert snapshot() == before
    assert f"only orchestration.workers.jobs.schedule runs here, not {function}" in caplog.text
    assert len(queue) == 0
    queues.ring(queues.SCHEDULER)
    serve(queues.SCHEDULER)  # the worker is alive, and does its work
    assert snapshot() != before


def test_pickled_job_is_never_unpickled(caplog, tmp_path):
    trap = tmp_path / "opened"

    class Bomb:
        def __reduce__(self):
            return (open, (str(trap), "w"))

    queue = queues.queue(queues.SCHEDULER)
    job = Job.create("x", connection=queues.connection(), serializer=DefaultSerializer, id="bomb")
    job.data = DefaultSerializer.dumps(("os.getcwd", None, (Bomb(),), {}))
    job.origin = queue.name
    job.save()
    queues.connection().rpush(queue.key, job.id)
    serve(queues.SCHEDULER)
    assert not trap.exists()
    assert "job bomb on queue scheduler was refused" in caplog.text


def test_job_without_its_data_is_skipped():
    queue = queues.queue(queues.SCHEDULER)
    queues.connection().rpush(queue.key, "nothing", b"\xff\xfe")
    task = new_task()
    queues.ring(queues.SCHEDULER)
    serve(queues.SCHEDULER)
    assert len(queue) == 0
    assert states(task)["hello"] == "processing"


GARBAGE = [b"", b"\x80\x04pickle", b"{}", b"[" * 9000, b'{"step": 1}', b"null"]


def test_malformed_replies_are_refused_and_good_ones_recorded(caplog):
    task = new_task()
    (request,) = claimed()
    queues.ring(queues.SCHEDULER, [*GARBAGE, reply_to(request).dump(), *GARBAGE])
    serve(queues.SCHEDULER)
    assert states(task)["hello"] == "processed"
    refused = [record for record in caplog.records if "malformed reply" in record.message]
    assert len(refused) == 2 * len(GARBAGE)


def test_malformed_requests_are_refused(caplog):
    queues.ring("greeter", GARBAGE)
    serve("greeter")
    jobs.close_runtimes()
    assert caplog.text.count("a malformed request to greeter was refused") == len(GARBAGE)
    assert not queues.take(queues.SCHEDULER, 10)


def test_queues_ring_without_an_entry_in_the_settings(settings):
    settings.RQ_QUEUES = {}
    queues.ring_all({"greeter": [b"one", b"two"], queues.SCHEDULER: []})
    redis = queues.connection()
    assert redis.lrange(queues.inbox("greeter"), 0, -1) == [b"one", b"two"]
    assert redis.lrange(queues.inbox(queues.SCHEDULER), 0, -1) == [queues.LOOK]
    assert redis.exists(queues.flag("greeter"), queues.flag(queues.SCHEDULER)) == 2
    for name in ("greeter", queues.SCHEDULER):
        assert django_rq.get_queue(name).count == 1


def test_request_that_comes_three_times_is_answered_once():
    new_task()
    (request,) = claimed()
    for copies in (2, 1):  # together, and after the first were answered
        queues.ring("greeter", [request.dump()] * copies)
        serve("greeter")
    jobs.close_runtimes()
    replies = [raw for raw in queues.take(queues.SCHEDULER, 10) if raw != queues.LOOK]
    assert len(replies) == 1


def test_failed_doorbell_leaves_the_worker_alive(caplog, monkeypatch):
    monkeypatch.setattr(jobs, "schedule", lambda: 1 / 0)
    queues.ring(queues.SCHEDULER)
    serve(queues.SCHEDULER)
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    task = new_task()
    queues.clear_doorbell(queues.SCHEDULER)
    queues.ring(queues.SCHEDULER)
    serve(queues.SCHEDULER)
    assert states(task)["hello"] == "processing"


def test_jobs_leave_nothing_in_redis():
    new_task()
    queues.ring(queues.SCHEDULER)
    serve(queues.SCHEDULER)
    jobs_left = queues.connection().keys("rq:job:*")
    origins = [queues.connection().hget(key, "origin") for key in jobs_left]
    assert origins == [b"greeter"]  # the doorbell it rang; its own is gone
    assert queues.connection().llen("rq:queue:scheduler") == 0


def test_replies_are_kept_when_the_backend_is_killed(caplog):
    task = new_task()
    (request,) = claimed()
    queues.ring(queues.SCHEDULER, [reply_to(request).dump()])
    with writes_fail("orchestration_attempt", "INSERT", "57P01", times=1):
        serve(queues.SCHEDULER)
        assert "queue scheduler must wait" in caplog.text
        queues.clear_doorbell(
            queues.SCHEDULER
        )  # the doorbell expires: that is the pause between two tries
        queues.ring(queues.SCHEDULER)
        serve(queues.SCHEDULER)
    assert states(task)["hello"] == "processed"
    assert Task.objects.get(id=task.id).state == "processing"


def test_connection_to_a_read_only_server_is_replaced(caplog):
    task = new_task()
    (request,) = claimed()
    queues.ring(queues.SCHEDULER, [reply_to(request).dump()])
    with read_only():
        serve(queues.SCHEDULER)
        assert "read-only transaction" in caplog.text
        assert connection.connection is None  # not one that looks healthy for ever
        with pytest.raises(OperationalError, match="session is read-only"):
            connection.ensure_connection()  # nor is a new one made
    queues.clear_doorbell(queues.SCHEDULER)
    queues.ring(queues.SCHEDULER)
    serve(queues.SCHEDULER)
    assert states(task)["hello"] == "processed"


def test_worker_waits_for_an_unavailable_redis(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(conf, "REDIS_RECONNECT_S", 0.05)
    known = queues.connection().connection_pool.connection_kwargs["path"]
    away = tmp_path / "redis.sock"
    task = new_task()
    queues.ring(queues.SCHEDULER)

    def return_it():
        wait_for(lambda: "Redis is away" in caplog.text, "it finds Redis away")
        away.symlink_to(known)

    friend = threading.Thread(target=return_it)
    client = Redis.from_url(f"unix://{away}", retry=Retry(NoBackoff(), 0))
    try:
        friend.start()
        worker.QueueWorker(queues.queue(queues.SCHEDULER, client)).serve(burst=True)
    finally:
        friend.join()
        client.close()
    assert states(task)["hello"] == "processing"


@pytest.fixture
def stopped_redis():
    """Redis takes connections, and answers no one."""
    process = int(queues.connection().info("server")["process_id"])
    os.kill(process, signal.SIGSTOP)
    yield lambda: os.kill(process, signal.SIGCONT)
    os.kill(process, signal.SIGCONT)
    wait_for(queues.connection().ping, "Redis answers")


def test_replies_are_kept_until_redis_is_back(stopped_redis, monkeypatch):
    monkeypatch.setattr(conf, "REDIS_TIMEOUT_S", 0.2)
    monkeypatch.setattr(conf, "REDIS_BACKOFF_S", 0.1)
    inbox = AgentInbox("greeter", "greeter-1")
    in_time = PendingMessage(message=b"reply", until=clock.now() + 60)
    too_late = PendingMessage(message=b"late", until=clock.now() + 0.5)  # while Redis is away
    back = threading.Timer(1, stopped_redis)
    back.start()

    async def send():
        beats = 0
        sending = asyncio.create_task(inbox.send([in_time, too_late], [7]))
        while not sending.done():
            beats += 1
            await asyncio.sleep(0.01)
        await inbox.close()
        return await sending, beats

    sent, beats = asyncio.run(send())
    back.join()
    assert sent
    assert beats > 20  # calls under way go on meanwhile
    queues.put_back(queues.SCHEDULER, [b"reply"])
    taken = queues.take(queues.SCHEDULER, 100)
    assert taken.count(b"reply") >= 2
    # what Redis had already been given when it stopped, it takes: nothing is sent past complete-by
    assert taken.count(b"late") < taken.count(b"reply") - 1


def test_reply_is_not_sent_past_its_deadline():
    inbox = AgentInbox("greeter", "greeter-1")
    over = PendingMessage(message=b"late", until=clock.now())

    async def send():
        await inbox.first_time([Taken(step=7, attempt=1, name="7:1", until=clock.now() + 5)])
        sent = await inbox.send([over], [7])
        await inbox.close()
        return sent

    assert asyncio.run(send())
    assert queues.take(queues.SCHEDULER, 10) == []
    assert queues.held_by("greeter-1") == {}  # its attempt is over here all the same


def test_request_counts_as_new_for_one_worker_and_until_its_deadline():
    soon = clock.now() + 60
    ones = [
        Taken(step=step, attempt=1, name=f"{step}:1", until=until)
        for step, until in [(1, soon), (2, soon), (2, soon), (3, clock.now() - 1)]
    ]

    async def take(worker):
        inbox = AgentInbox("greeter", worker)
        first = await inbox.first_time(ones)
        await inbox.close()
        return first

    assert asyncio.run(take("greeter-1")) == [True, True, False, True]
    # what may not be performed any more is not remembered
    assert asyncio.run(take("greeter-2")) == [False, False, False, True]
    assert queues.held_by("greeter-2") == {1: 1, 2: 1, 3: 1}


def test_message_taken_after_sigterm_is_returned():
    new_task()
    (request,) = claimed()
    queues.ring("greeter", [request.dump()])
    runtime = jobs.runtime("greeter")
    taking = runtime.inbox.take

    async def take_and_be_stopped(limit, wait=0):
        messages = await taking(limit, wait)
        runtime.stop()
        return messages

    runtime.inbox.take = take_and_be_stopped
    runtime.serve()
    jobs.close_runtimes()
    assert request.dump() in queues.take("greeter", 10)
    assert queues.held_by(runtime.agent.instance) == {}
    assert queues.take(queues.SCHEDULER, 10) == []


class TestAnActionOfTheNextRelease:
    @pytest.fixture
    def request_of(self, monkeypatch):
        monkeypatch.setattr(conf, "PASS_ON_WAIT_S", 0.01)

        def make(**fields):
            new_task()
            (request,) = claimed()
            return request.altered(action="wave", **fields)

        return make

    def serve(self, request):
        """Have it taken once by a worker that does not know the action."""
        queues.ring("greeter", [request.dump()])
        runtime = jobs.runtime("greeter")
        taking = runtime.inbox.take

        async def take_once(limit, wait=0):
            messages = await taking(limit, wait)
            if request.dump() in messages:
                runtime.inbox.take = nothing
            return messages

        async def nothing(limit, wait=0):
            await asyncio.sleep(0.05)
            return []

        runtime.inbox.take = take_once
        runtime.serve()
        jobs.close_runtimes()

    def test_goes_back_to_the_inbox(self, request_of):
        request = request_of()
        self.serve(request)
        (back,) = [raw for raw in queues.take("greeter", 10) if raw != queues.LOOK]
        assert Request.parse(back) == request.altered(passed=1)
        assert queues.take(queues.SCHEDULER, 10) == []

    def test_fails_when_it_has_come_back_too_often(self, request_of):
        self.serve(request_of(passed=conf.MAX_PASS_ONS))
        assert queues.take("greeter", 10) == []
        replies = [raw for raw in queues.take(queues.SCHEDULER, 10) if raw != queues.LOOK]
        assert [Reply.parse(raw).code for raw in replies] == ["no_such_action"]

    def test_is_taken_by_the_same_worker_once_it_is_back(self, request_of):
        request = request_of()
        queues.ring("greeter", [request.dump()])
        serve("greeter")  # until no worker has it
        jobs.close_runtimes()
        replies = [raw for raw in queues.take(queues.SCHEDULER, 10) if raw != queues.LOOK]
        assert [Reply.parse(raw).code for raw in replies] == ["no_such_action"]
