"""A report by the service's own id beside the acceptance under that id: neither misses the other."""

import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.db import connection, transaction

from drill.waiting import wait_for
from orchestration import api, task_requests
from orchestration.messaging.messages import Accepted
from orchestration.models import Step, TaskRequest
from orchestration.transitions import external_ids, replies
from tests.support.engine import claimed, new_task, reply_to
from tests.support.plans import plan

pytestmark = pytest.mark.django_db(transaction=True)
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
NO_LOCK = "SELECT %(ids)s, %(agents)s, %(external_ids)s"


class Held:
    """Work in a transaction of a thread that stands still before its commit, until it is released."""

    def __init__(self, pool, work):
        self.stands, self.goes_on = threading.Event(), threading.Event()
        self.ended = pool.submit(self._run, work)

    def hold(self):
        """Stand still; called by the work."""
        self.stands.set()
        assert self.goes_on.wait(30)

    def _run(self, work):
        try:
            work(self)
        finally:
            self.stands.set()
            connection.close()


def waits_or_ended(held):
    """Return whether work waits for a lock, or has come to its end."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return cursor.fetchone()[0] > 0 or held.ended.done()


@pytest.fixture
def acceptance():
    new_task("7")
    (request,) = claimed()
    accepted = reply_to(request, "later", result={}).altered(wait=Accepted(id="pi_1", look=None))

    def accept(held):
        with transaction.atomic():
            replies.record([accepted])
            held.hold()

    return accept


@pytest.fixture
def report(monkeypatch):
    api.complete(by=("greeter", "pi_1"), result={"text": "x"}, actor="x", id=uuid4())
    holders = []
    find_steps = external_ids.find_steps

    def find_and_hold(reports):
        find_steps(reports)
        for held in holders:
            held.hold()

    monkeypatch.setattr(external_ids, "find_steps", find_and_hold)

    def take(held):
        holders.append(held)
        task_requests.take(1)

    return take


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("order", ["the report comes first", "the acceptance comes first"])
def test_neither_misses_the_other(acceptance, report, order, guarded, monkeypatch):
    if not guarded:
        monkeypatch.setattr(external_ids, "LOCK_FOR_REPORT", NO_LOCK)
    works = [report, acceptance] if "report" in order else [acceptance, report]
    with ThreadPoolExecutor(2) as pool:
        first = Held(pool, works[0])
        assert first.stands.wait(30)
        second = Held(pool, works[1])
        second.goes_on.set()
        wait_for(lambda: waits_or_ended(second), "the second waits, or has ended", 30)
        first.goes_on.set()
        for held in (first, second):
            held.ended.result(30)
    request = TaskRequest.objects.get()
    assert Step.objects.get(name="hello").process_state == "awaiting"
    assert (request.reference == "7", request.done_at is None) == (guarded, guarded)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (external_ids.FIND, "external_id_of_agent"),
        (external_ids.TAKE_KEPT, "request_kept"),
        (external_ids.OF_TASK, "external_id_once"),
    ],
)
def test_ids_are_looked_for_along_an_index(statement, index):
    key = {"agent": "greeter", "external_id": "pi_1", "task": str(uuid4())}
    lists = {name: ["x"] for name in ("agents", "external_ids", "workflows", "references", "names")}
    assert index in {name for _, name in plan(statement, {**key, **lists, "ids": [1]})}
