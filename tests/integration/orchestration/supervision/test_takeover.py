"""Leadership changes hundreds of times while steps expire: each failure counts once, none is missed."""

import threading
from collections import Counter
from datetime import timedelta
from itertools import count

import pytest
from django.db import close_old_connections, connection
from django.db.models import F

from drill.waiting import wait_for
from orchestration.models import Attempt, Lease, Policy, Step, Worker
from orchestration.models.fields import DatabaseNow
from tests.support.engine import claimed_beside_others, new_task, staff, watch_of
from tests.support.unlocked import TASK_LOCKS, unlock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]
CHANGES = 300
MOST_CHANGES = 1000  # until two supervisors happen to meet at a step
TASKS = 4


@pytest.fixture
def _impatient():
    """Failures are retried at once, for ever; workers that have just come are to blame for them."""
    staff()
    tomorrow = DatabaseNow() + timedelta(days=1)
    Worker.objects.update(started_at=tomorrow, seen_at=tomorrow)
    Policy.objects.update(
        window=100, failure_threshold=1000, undo_threshold=1000, backoff=0.001, backoff_cap=0.001
    )
    for _ in range(TASKS):
        new_task()


@pytest.fixture
def refused(caplog):
    """Return what gives the batches in which an attempt ended twice, had it not been refused.

    By the database, or as the step was not what it was when that was decided.
    """
    caplog.set_level("INFO", "orchestration.database.batches")
    why = ("attempt_once", "rows have changed since it was decided")
    return lambda: [
        record for record in caplog.records if any(text in record.getMessage() for text in why)
    ]


class Rivals:
    """Supervisors that sweep whenever they hold the lease, as fast as they can."""

    def __init__(self, names):
        self.stop = threading.Event()
        self.failed = []
        self.threads = [threading.Thread(target=self.watch, args=(name,)) for name in names]

    def watch(self, name):
        try:
            watch, clock = watch_of(name), count(0, 1000)
            while not self.stop.is_set():
                watch.step(next(clock))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.failed.append(error)
        finally:
            connection.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(30)
        close_old_connections()


def change_leaders(changes, enough=lambda: False):
    """Take the lease from its holder, again and again, while steps expire, until it is enough.

    Return how often each step was dispatched, what the supervisors broke on, and who led.
    """
    dispatched, holders = Counter(), Counter()
    with Rivals(["supervisor-1", "supervisor-2", "supervisor-3"]) as rivals:
        epoch = wait_for(lambda: Lease.objects.get(name="supervisor").epoch, "a supervisor leads")
        for _ in range(changes):
            for request in claimed_beside_others():  # a dispatch whose reply never comes
                dispatched[request.step] += 1
                Step.objects.filter(id=request.step).update(complete_by=DatabaseNow())
            # the leader does not notice: it may be in the middle of a sweep
            Lease.objects.filter(name="supervisor", epoch=epoch).update(
                expires_at=DatabaseNow(), holder=F("name")
            )
            later = Lease.objects.filter(name="supervisor", epoch__gt=epoch)
            lease = wait_for(
                lambda later=later: rivals.failed or later.first(), "another leads", pause=0.001
            )
            if rivals.failed or enough():
                break
            epoch = lease.epoch
            holders[lease.holder] += 1
        expired = Step.objects.filter(process_state="processing")
        wait_for(lambda: rivals.failed or not expired.exists(), "every expiry is found")
    return dispatched, rivals.failed, holders


@pytest.mark.usefixtures("_impatient")
def test_failures_are_counted_exactly_once(refused):
    dispatched, failed, holders = change_leaders(CHANGES)
    assert not failed
    assert not refused()
    assert len(holders) > 1
    assert dispatched.total() > CHANGES / 10
    assert Counter(Attempt.objects.values_list("step_id", flat=True)) == dispatched
    counted = Step.objects.filter(id__in=dispatched).values_list("id", "failure_count")
    assert dict(counted) == dict(dispatched)


@pytest.mark.usefixtures("_impatient")
def test_duplicates_are_refused_by_the_database_without_the_locks(monkeypatch, refused):
    unlock(*TASK_LOCKS, put=monkeypatch.setattr)
    _, failed, _ = change_leaders(MOST_CHANGES, refused)
    assert not failed  # what was refused is tried again, in parts
    assert refused()
