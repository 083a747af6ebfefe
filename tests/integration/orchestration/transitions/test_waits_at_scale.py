"""What waits for days costs nothing: looks for what is due go along an index, however much waits."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from bench.pages.waits import GREETINGS, await_many, delay_many
from drill.waiting import wait_for
from orchestration import conf, supervisor
from orchestration.cluster import leader_election
from orchestration.cluster.leader_memory import Memory
from orchestration.database import clock
from orchestration.messaging import queues
from orchestration.models import Attempt, Event, Gate, Incident, Policy, Wait
from orchestration.models.fields import DatabaseNow
from orchestration.supervision import duties
from orchestration.transitions import looks
from orchestration.workers import jobs, scheduler_duties
from tests.support.engine import claimed, new_task, staff
from tests.support.plans import analyse, spent

pytestmark = pytest.mark.django_db
AT_FIRST, MANY = 1_000, 5_000
OTHERS = {**GREETINGS, "workflow": "others"}


@pytest.mark.parametrize("fill", [await_many, delay_many])
def test_what_waits_costs_a_sweep_and_a_claim_nothing(fill):
    staff()
    memory = Memory()
    leadership = leader_election.acquire("supervisor-1")
    supervisor.sweep(leadership, memory)
    new_task()
    acts = {
        "look": lambda: duties.due(supervisor.DUTIES),
        "sweep": lambda: supervisor.sweep(leadership, memory),
        "claim": claimed,
        "duties": scheduler_duties.run,
    }
    before, after = (
        _pages_with(fill, *more, acts) for more in ((AT_FIRST, OTHERS), (MANY, GREETINGS))
    )
    assert {
        name: after[name] - before[name] for name in acts if after[name] > before[name] + 3
    } == {}
    supervisor.sweep(leadership, memory)
    assert not any(model.objects.exists() for model in (Attempt, Event, Incident))
    assert Wait.objects.filter(looks=0).count() == AT_FIRST + MANY
    assert all(before.values())
    assert spent(scheduler_duties.run)[0] == 1


def _pages_with(fill, count, step, acts):
    """Return how many pages acts read once there are more steps that wait.

    An index of some hundred rows has a page more on each way than an empty one, and no other up to many more.
    """
    with connection.cursor() as cursor:
        fill(cursor, count, step)
    analyse("orchestration_step", "orchestration_wait", "orchestration_task")
    return {name: spent(act)[1] for name, act in acts.items()}


@pytest.fixture
def many_due():
    new_task()
    with connection.cursor() as cursor:
        await_many(cursor, MANY, GREETINGS)
        cursor.execute("UPDATE orchestration_wait SET look_at = clock_timestamp()")
    analyse("orchestration_step", "orchestration_wait", "orchestration_task")


def test_looks_of_many_read_a_tenth_of_the_window(many_due):
    assert spent(lambda: looks.look(["greeter"], MANY))[1] < 500
    assert len(looks.look(["greeter"], MANY)["greeter"]) == 10


def test_looks_of_many_are_a_few_at_a_time(many_due):
    Policy.objects.update(window=1_000)
    for _ in range(2):
        asking = scheduler_duties.run()
        assert asking.again_in == conf.LOOKS_INTERVAL_S
        assert len(queues.take("greeter", MANY)) == conf.LOOKS_AT_A_TIME
    assert scheduler_duties.run(ask=False).again_in == conf.LOOKS_INTERVAL_S
    assert not queues.take("greeter", MANY)


def test_looks_go_on_after_those_that_are_out_and_for_no_agent_that_may_not_be_asked(many_due):
    assert scheduler_duties.run().again_in == conf.LOOKS_INTERVAL_S
    assert len(queues.take("greeter", MANY)) == 10
    assert scheduler_duties.run().again_in == conf.LOOKS_INTERVAL_S
    assert not queues.take("greeter", MANY)
    Gate.objects.update(state="half_open")
    assert scheduler_duties.run().again_in is None


@pytest.mark.parametrize(
    ("seconds", "again_in"), [(0.9, 0.8), (0.01, conf.LOOKS_INTERVAL_S), (5, None)]
)
def test_look_that_is_due_soon_is_waited_for(many_due, seconds, again_in):
    Wait.objects.update(look_at=None)
    soon = DatabaseNow() + timedelta(seconds=seconds)
    Wait.objects.filter(id=Wait.objects.first().id).update(look_at=soon)
    assert scheduler_duties.run().again_in == pytest.approx(again_in, abs=0.2)


@pytest.mark.django_db(transaction=True)
def test_a_scheduler_asks_again_after_a_while_and_not_with_each_message(many_due):
    Policy.objects.update(window=1_000)
    asked = 3 * conf.LOOKS_AT_A_TIME - 5
    Wait.objects.exclude(id__in=Wait.objects.values("id")[:asked]).update(look_at=None)
    began = clock.now()
    for _ in range(5):
        queues.try_to_ring(queues.SCHEDULER)
    jobs.schedule()
    times = sorted(Wait.objects.exclude(asked_at=None).values_list("asked_at", flat=True))
    assert len(times) == asked
    assert times[0].timestamp() >= began
    assert times[-1] - times[0] >= timedelta(seconds=2 * conf.LOOKS_INTERVAL_S)


@pytest.mark.django_db(transaction=True)
def test_a_scheduler_asks_on_while_replies_come(many_due):
    Policy.objects.update(window=1_000)
    asked = 3 * conf.LOOKS_AT_A_TIME - 5
    Wait.objects.exclude(id__in=Wait.objects.values("id")[:asked]).update(look_at=None)
    ended = threading.Event()

    def reply():
        while not ended.wait(0.02):
            queues.ring_all({queues.SCHEDULER: [b"no reply"]})

    replying = threading.Thread(target=reply)
    replying.start()

    def schedule():
        try:
            jobs.schedule()
        finally:
            connection.close()

    scheduling = threading.Thread(target=schedule)
    scheduling.start()
    try:
        wait_for(lambda: not Wait.objects.filter(look_at__lte=Now()).exists(), "all are asked", 5)
    finally:
        ended.set()
        replying.join()
        scheduling.join()
