"""What each part does when a statement fails: the table in docs/understand/failures.md, cell by cell.

The database itself raises each error, once, in the middle of a batch of three. For each, the
next turn or request finds all that was there, does it once, and blames no item for it.
"""

import re
from itertools import count
from uuid import uuid4

import pytest
from django.db import Error, connection
from django.test import Client

from orchestration import conf, submission
from orchestration.database.sql import is_unavailable
from orchestration.messaging import queues
from orchestration.models import (
    Alert,
    Attempt,
    DeadLetter,
    Event,
    Gate,
    Policy,
    StatusMessage,
    Step,
    Submission,
    Task,
)
from orchestration.models.fields import DatabaseNow
from orchestration.workers import jobs
from orders.lifecycle.access import link
from sasweb.stack.folders import PROJECT
from tests.support.applications import Caller, application
from tests.support.database import killed_before, reads_fail, writes_fail
from tests.support.engine import claimed, new_task, reply_to, staff, sweep
from tests.support.operations import advance, running
from tests.support.operations import states as items
from tests.support.operators import LEADER
from tests.support.shop import buy, products

pytestmark = pytest.mark.django_db(transaction=True)
COUNT = 3


@pytest.fixture(autouse=True)
def _ready(monkeypatch):
    monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.05)
    staff()
    products()
    Policy.objects.update(window=10_000, time_allowed=3600)  # only what a test wants expires


def raised_by(act):
    """Act as a worker does; return the error that ended it, if one did."""
    try:
        act()
    except Error as error:
        connection.close()
        return error
    return None


class Part:
    """A part of the system with a batch to deal with: what it writes, and whether it is done."""

    def fault(self, code):
        raise NotImplementedError

    def prepare(self):
        raise NotImplementedError

    def act(self):
        raise NotImplementedError

    def is_done(self):
        raise NotImplementedError

    def outcome(self, code):
        """Return in a word what comes of an error; the rest is to be so for every error."""
        self.prepare()
        with self.fault(code):
            if error := raised_by(self.act):
                assert is_unavailable(error)
                assert not self.is_done()
                word = "waits"
            else:
                word = "in parts" if self.is_done() else "next turn"
            self.act()
        assert self.is_done()
        return word


class SchedulerTurn(Part):
    def fault(self, code):
        return writes_fail("orchestration_attempt", "INSERT", code, times=1)

    def prepare(self):
        self.tasks = [new_task() for _ in range(COUNT)]
        queues.ring(queues.SCHEDULER, [reply_to(request).dump() for request in claimed()])

    def act(self):
        jobs.schedule()

    def is_done(self):
        attempts = Attempt.objects.filter(step__task__in=self.tasks)
        assert attempts.count() in {0, COUNT}  # all, and each once
        return attempts.count() == COUNT


class Sweep(Part):
    def fault(self, code):
        return writes_fail("orchestration_attempt", "INSERT", code, times=1)

    def prepare(self):
        Gate.objects.update(state="closed", slots=[])  # it opens after this number of failures
        first = Task.objects.count()  # before the retries of earlier ones
        self.tasks = [new_task(priority=first) for _ in range(COUNT)]
        claimed()
        Step.objects.filter(task__in=self.tasks, name="hello").update(complete_by=DatabaseNow())

    def act(self):
        staff()
        sweep(LEADER)

    def is_done(self):
        steps = Step.objects.filter(task__in=self.tasks, name="hello")
        return set(steps.values_list("failure_count", "attempt")) == {(1, 1)}


class SubmissionTurn(Part):
    def fault(self, code):
        return writes_fail("orchestration_task", "INSERT", code, times=1)

    def prepare(self):
        self.before = Task.objects.count()
        for _ in range(COUNT):
            Submission.objects.create(workflow="greet", reference=uuid4().hex, data={"name": "Ada"})

    def act(self):
        jobs.take_submissions()

    def is_done(self):
        assert not Submission.objects.exclude(refused_at=None).exists()
        made = Task.objects.count() - self.before
        assert made + Submission.objects.count() == COUNT
        return made == COUNT


class StatusDelivery(Part):
    def fault(self, code):
        return writes_fail("orchestration_statusmessage", "DELETE", code, times=1)

    def prepare(self):
        for _ in range(COUNT):
            new_task(reply_to="shop")

    def act(self):
        jobs.deliver_status("shop")

    def is_done(self):
        assert not StatusMessage.objects.exclude(refused_at=None).exists()
        return not StatusMessage.objects.exists()


class BulkOperation(Part):
    def fault(self, code):
        return writes_fail("orchestration_operationitem", "UPDATE", code, times=1)

    def prepare(self):
        self.operation = running([new_task() for _ in range(COUNT)], "hold")

    def act(self):
        advance(self.operation)

    def is_done(self):
        states = items(self.operation)
        assert states in ({"waiting": COUNT}, {"fixed": COUNT})
        return "fixed" in states


class ChangeRequest(Part):
    """A page, or the API, about one order."""

    def fault(self, code):
        return reads_fail("orders_order", code, times=1)

    def outcome(self, code):
        self.prepare()
        with self.fault(code):
            answer = self.act()
            assert answer.status_code != 503 or answer["Retry-After"] == "30"
            assert self.act().status_code == 200
        return str(answer.status_code)


class ShopPage(ChangeRequest):
    def prepare(self):
        self.order = buy(Client())
        submission.take(10)

    def act(self):
        return Client(raise_request_exception=False).get(link(self.order))


class JsonApi(ChangeRequest):
    def __init__(self):
        self.till = Caller(application("till", rate=1000)[1])

    def prepare(self):
        self.order = self.till.place(uuid4().hex).json()["id"]
        submission.take(10)

    def act(self):
        return self.till.get(f"orders/{self.order}")


PARTS = {
    "scheduler": SchedulerTurn,
    "sweep": Sweep,
    "submission": SubmissionTurn,
    "status": StatusDelivery,
    "bulk": BulkOperation,
    "page": ShopPage,
    "API": JsonApi,
}
CODES = ["08006", "25006", "25P03", "40001", "40P01", "53100", "53300", "54001", "55P03", "57014",
         "57P01", "XX000"]  # fmt: skip


def documented():
    """Return the table in the documentation: part → SQLSTATE → what comes of it."""
    page = (PROJECT / "docs/understand/failures.md").read_text()
    rows = re.findall(r"^\| ([0-9A-Z]{5}), [^|]+\|(.+)\|$", page, re.MULTILINE)
    assert [code for code, _ in rows] == CODES
    heads = re.search(r"^\| SQLSTATE \|(.+)\|$", page, re.MULTILINE)
    assert [head.strip() for head in heads[1].split("|")] == list(PARTS)
    cells = {code: [cell.strip() for cell in row.split("|")] for code, row in rows}
    return {part: {code: cells[code][n] for code in CODES} for n, part in enumerate(PARTS)}


@pytest.mark.parametrize("part", PARTS)
def test_database_errors_have_their_documented_effect(part):
    its = PARTS[part]()
    outcomes = {code: its.outcome(code) for code in CODES}
    assert outcomes == documented()[part]
    nothing_is_blamed()


@pytest.mark.parametrize("part", ["scheduler", "sweep", "submission", "status", "bulk"])
def test_backend_killed_at_any_statement_loses_and_doubles_nothing(part):
    its = PARTS[part]()
    for number in count(1):
        its.prepare()
        with killed_before(number) as killing:
            error = raised_by(its.act)
        if not killing.reached:
            break
        assert error is None or is_unavailable(error)
        its.act()
        assert its.is_done(), f"killed before statement {number}"
    assert its.is_done()
    assert number > 3
    nothing_is_blamed()


def nothing_is_blamed():
    assert not DeadLetter.objects.exists()
    assert not Alert.objects.exists()
    assert not Event.objects.filter(kind="reply_refused").exists()
