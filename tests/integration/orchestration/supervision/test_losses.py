"""What our own processes lose: no service is blamed for it, and it is tried again before its deadline."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestration import conf
from orchestration.cluster import heartbeat, instance
from orchestration.cluster.leader_memory import Memory
from orchestration.messaging import queues
from orchestration.models import Attempt, Gate, Policy, Step, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.supervision.losses import Losses
from tests.support.engine import claimed, new_task, reply_to, staff, states, sweep
from tests.support.operators import LEADER

pytestmark = pytest.mark.django_db
MANY = 30


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()
    Worker.objects.update(started_at=DatabaseNow() - timedelta(hours=1))


@pytest.fixture
def memory():
    """What a leader keeps in mind that has looked before."""
    memory = Memory()
    memory.of("losses", Losses).look(datetime.now(UTC) - timedelta(hours=1))
    return memory


def in_flight(count=MANY):
    tasks = [new_task() for _ in range(count)]
    return tasks, claimed()


def expire(seconds=1):
    Step.objects.filter(process_state="processing").update(
        complete_by=DatabaseNow() - timedelta(seconds=seconds)
    )


def gate():
    return Gate.objects.get(agent="greeter").state


class TestNoServiceIsBlamed:
    def test_but_for_a_silence_that_nothing_of_ours_explains(self, memory):
        in_flight()
        expire()
        sweep(LEADER, memory=memory)
        assert gate() != "closed"

    def test_by_a_leader_that_has_not_looked_before(self):
        in_flight()
        expire()
        sweep(LEADER, memory=(memory := Memory()))
        assert gate() == "closed"
        in_flight()
        expire()
        sweep(LEADER, memory=memory)
        assert gate() != "closed"

    @pytest.mark.parametrize(
        "change",
        [
            {"started_at": DatabaseNow()},  # another one, in the place of one that died
            {"seen_at": DatabaseNow() - timedelta(seconds=8)},
        ],
    )
    def test_when_a_scheduler_died_after_its_claim(self, memory, change):
        in_flight()
        Worker.objects.filter(queue="scheduler").update(**change)
        expire()
        sweep(LEADER, memory=memory)
        assert gate() == "closed"
        assert Attempt.objects.filter(outcome="expired").count() == MANY

    def test_when_no_scheduler_is_there(self, memory):
        in_flight()
        Worker.objects.filter(queue="scheduler").delete()
        expire()
        sweep(LEADER, memory=memory)
        assert gate() == "closed"

    def test_when_redis_lost_what_it_held(self, memory):
        in_flight()
        queues.connection().flushdb()
        sweep(LEADER, memory=memory)
        expire()
        sweep(LEADER, memory=memory)
        assert gate() == "closed"

    def test_when_redis_was_away(self, memory, monkeypatch, tmp_path):
        in_flight()
        with monkeypatch.context() as away:
            kwargs = queues.connection().connection_pool.connection_kwargs
            queues.connection().connection_pool.reset()
            away.setitem(kwargs, "path", str(tmp_path / "nobody.sock"))
            sweep(LEADER, memory=memory)
        queues.connection().connection_pool.reset()
        expire()
        sweep(LEADER, memory=memory)
        assert gate() == "closed"

    def test_while_replies_lie_unread_and_they_are_waited_for(self, memory):
        tasks, requests = in_flight()
        queues.ring(queues.SCHEDULER, [reply_to(request).dump() for request in requests])
        sweep(LEADER, memory=memory)
        expire()
        assert sweep(LEADER, memory=memory)["retried"] == 0
        assert {states(task)["hello"] for task in tasks} == {"processing"}
        expire(seconds=conf.UNREAD_ALLOWANCE_S + 1)  # not for ever
        assert sweep(LEADER, memory=memory)["retried"] == MANY
        assert gate() == "closed"


class TestWorkThatDiedWithItsWorker:
    @pytest.fixture(autouse=True)
    def _at_once(self, monkeypatch):
        monkeypatch.setattr(conf, "WORKER_DEAD_AFTER_S", 10.0)
        monkeypatch.setattr("orchestration.housekeeping.lost_attempts.LOOKED", 0.0)

    def taken(self, worker, requests):
        notes = {request.step: request.attempt for request in requests}
        queues.connection().hset(queues.at_hand(worker), mapping=notes)

    def silent(self, worker, seconds=20.0):
        Worker.objects.filter(instance=worker).update(
            seen_at=DatabaseNow() - timedelta(seconds=seconds)
        )

    def test_is_tried_again_before_its_deadline(self, memory):
        _, requests = in_flight(5)
        held, others = requests[:3], requests[3:]
        Step.objects.update(dispatched_at=DatabaseNow() - timedelta(seconds=60))
        self.taken("greeter-0", held)
        self.silent("greeter-0")
        sweep(LEADER, memory=memory)  # they expire
        sweep(LEADER, memory=memory)
        pending = set(Step.objects.filter(process_state="pending").values_list("id", flat=True))
        assert pending == {request.step for request in held}
        flying = Step.objects.filter(process_state="processing").values_list("id", flat=True)
        assert set(flying) == {request.step for request in others}
        assert gate() == "closed"

    def test_is_left_alone_while_the_worker_lives(self, memory):
        _, requests = in_flight(5)
        Step.objects.update(dispatched_at=DatabaseNow() - timedelta(seconds=60))
        self.taken("greeter-0", requests)
        assert sweep(LEADER, memory=memory)["retried"] == 0

    def test_is_left_alone_after_a_silence_that_has_ended(self, memory, monkeypatch):
        now = [100.0]
        monkeypatch.setattr("orchestration.database.clock.steady", lambda: now[0])
        monkeypatch.setattr("orchestration.housekeeping.lost_attempts.LOOKED", 5.0)
        _, requests = in_flight(5)
        Step.objects.update(dispatched_at=DatabaseNow() - timedelta(seconds=60))
        self.taken("greeter-0", requests)
        for passed, silent, retried in (
            (0, 8, 0),
            (1, 0, 0),  # it reports
            (60, 20, 0),  # after a while without the database, perhaps
            (1, None, 0),
            (5, None, 0),  # now they expire
            (0, None, 5),
        ):
            now[0] += passed
            if silent is not None:
                self.silent("greeter-0", silent)
            assert sweep(LEADER, memory=memory)["retried"] == retried

    def test_is_not_what_a_worker_took_that_only_cannot_report(self, memory):
        _, requests = in_flight(5)
        self.taken("greeter-0", requests)
        self.silent("greeter-0")
        assert sweep(LEADER, memory=memory)["retried"] == 0

    def test_is_not_another_attempt(self, memory):
        in_flight(1)
        Step.objects.update(dispatched_at=DatabaseNow() - timedelta(seconds=60))
        queues.connection().hset(queues.at_hand("greeter-0"), Step.objects.first().id, 7)
        self.silent("greeter-0")
        assert sweep(LEADER, memory=memory)["retried"] == 0


def test_new_agent_without_a_migration_gets_its_rows():
    Gate.objects.filter(agent="greeter").delete()
    Policy.objects.filter(agent="greeter").delete()
    new_task()
    assert claimed() == []
    sweep(LEADER)
    assert len(claimed()) == 1


def test_process_with_the_longest_name_reports_itself(monkeypatch):
    queue = f"status.{'a' * 60}"
    monkeypatch.setattr("socket.gethostname", lambda: "h" * 60)
    monkeypatch.setattr("os.getpid", lambda: 4_194_304)
    assert len(instance.name(queue)) <= 80
    heartbeat.report(queue)
    assert queue in {worker.queue for worker in heartbeat.alive()}
