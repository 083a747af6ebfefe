"""A task that awaits a result is not overdue by that: its deadline is put off by the wait."""

import pytest

from orchestration import registry
from orchestration.agents.actions import action
from orchestration.agents.http import HttpAgent
from orchestration.models import Alert
from orchestration.models import Step as StoredStep
from orchestration.payloads.placeholders import key
from orchestration.testing import outcomes
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow

pytestmark = pytest.mark.django_db
ALLOWED = 100.0
WAIT = 1000.0


class Carrier(HttpAgent):
    name = "slow_carrier"
    base_url = "http://127.0.0.1:9"

    @action
    async def book(self, call):
        """Book a parcel."""
        return await self.post(call, "/parcels", body=call.payload)


def ship(**fields):
    return Step(
        name="ship", agent="slow_carrier", action="book", undo="book",
        undo_request={"key": key("ship")}, **fields,
    )  # fmt: skip


@pytest.fixture
def start(monkeypatch, request):
    """Begin a task of these steps; its agent never replies in a test."""

    def begin(*steps):
        monkeypatch.setitem(registry.agents, "slow_carrier", Carrier)
        workflow = Workflow(name="w", steps=steps, time_allowed=ALLOWED)
        monkeypatch.setitem(registry.workflows, "w", workflow)
        run = request.getfixturevalue("run")
        run.policy("slow_carrier", time_allowed=9_000.0)
        run.script("slow_carrier.book", outcomes.silent())
        task = run.submit("w")
        run.go()
        return run, task

    return begin


def overdue(task):
    return task.progress.overdue


def put_off(step):
    """Return for how long the deadline of a step's task was put off by the step, and is to be yet."""
    stored = StoredStep.objects.select_related("task").get(name=step)
    deadline = (stored.task.complete_by - stored.task.created_at).total_seconds()
    return deadline - ALLOWED + stored.held_seconds


def test_task_that_awaits_is_not_overdue(start):
    run, task = start(Step(name="goods", signal="goods", ends_within=WAIT), ship(after=["goods"]))
    run.wait(WAIT - 1)
    assert (task.steps["goods"], overdue(task), Alert.objects.count()) == ("awaiting", False, 0)


def test_deadline_is_put_off_by_as_long_as_the_result_was_awaited(start):
    run, task = start(Step(name="goods", signal="goods", ends_within=WAIT), ship(after=["goods"]))
    run.wait(50)
    run.complete(task, "goods", {})
    run.wait(ALLOWED - 1)
    assert (task.steps["ship"], overdue(task)) == ("processing", False)
    run.wait(60)
    assert overdue(task)


def test_deadline_is_put_off_no_further_than_the_wait_may_last(start):
    run, task = start(Step(name="goods", signal="goods", ends_within=WAIT), ship(after=["goods"]))
    run.wait(WAIT - 1)
    run.complete(task, "goods", {})
    run.wait(ALLOWED + 1)
    assert task.steps["ship"] == "processing"
    run.wait(60)
    assert overdue(task)


@pytest.mark.parametrize(
    ("late", "ended"), [("pass", "skipped"), ("error", "error"), ("undo", "cancelled")]
)
def test_wait_that_ends_by_its_time_is_counted_once(start, late, ended):
    goods = Step(name="goods", signal="goods", ends_within=WAIT, late=late)
    run, task = start(goods, ship())
    run.wait(WAIT + 1)
    assert task.steps["goods"] == ended
    assert put_off("goods") == pytest.approx(WAIT, abs=1)


def test_refusal_that_is_passed_over_is_counted_once(start):
    goods = Step(name="goods", signal="goods", ends_within=WAIT, refused={"lost": "pass"})
    run, task = start(goods, ship())
    run.wait(30)
    run.complete(task, "goods", refused="lost")
    run.go()
    assert task.steps["goods"] == "skipped"
    assert put_off("goods") == pytest.approx(30, abs=1)


def test_time_of_what_a_service_accepted_counts_from_then(start):
    run, task = start(Step(name="first", signal="first"), ship(after=["first"], ends_within=WAIT))
    run.script("slow_carrier.book", outcomes.later())
    run.complete(task, "first", {})
    run.wait(30)
    run.complete(task, "ship", {})
    run.go()
    assert task.state == "processed"
    assert put_off("ship") == pytest.approx(30, abs=1)
