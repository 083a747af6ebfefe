"""Steps that may be skipped, amid late replies, amendments, holds and workflows of odd sizes."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration import registry
from orchestration.agents.errors import Rejected
from orchestration.decisions.amendment import Amendment
from orchestration.messaging.messages import Reply
from orchestration.models import Alert, Event, Step, Task
from orchestration.payloads.placeholders import done, field, first, key, not_, passed, result
from orchestration.scheduler import run_once
from orchestration.testing import outcomes
from orchestration.testing.outcomes import Outcome
from orchestration.transitions.holds import hold, release
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit
from orchestration.transitions.undo import undo
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.carrier import Carrier
from tests.support.engine import new_task
from tests.support.violations import violations

pytestmark = pytest.mark.django_db


class Bank(Carrier):
    name = "bank"


def call(name, agent="carrier", **fields):
    undo = {"undo": "cancel", "undo_request": {"key": key(name)}}
    return Declared(name=name, agent=agent, action="book", **{**undo, **fields})


@pytest.fixture
def declare(monkeypatch):
    for agent in (Carrier, Bank):
        monkeypatch.setitem(registry.agents, agent.name, agent)

    def add(name, *steps):
        monkeypatch.setitem(registry.workflows, name, Workflow(name=name, steps=list(steps)))
        return name

    add(
        "either",
        call("a", refused={"not_served": "pass"}),
        call("b", "bank", after=["a"], when=passed("a", "not_served")),
    )
    return add


@pytest.fixture
def shop(declare, run):
    run.policy("carrier", tries=1)
    run.script("carrier.book", outcomes.done(id="p1"))
    run.script("bank.book", outcomes.done(id="b1"))
    return run


def step_of(task, name):
    return Step.objects.get(task__reference=task.reference, name=name, direction="do")


class TestLateReply:
    """The first call is lost; the repeat gets a refusal that the service keeps; then a reply comes."""

    @pytest.fixture
    def passed_over(self, shop):
        lost, refused = (
            outcomes.silent(happened=False),
            outcomes.rejected("not_served", stored=True),
        )
        shop.script("carrier.book", lost, refused)
        order = shop.submit("either")
        shop.finish()
        assert order.steps == {"a": "skipped", "b": "processed"}
        assert violations() == []
        return order

    @staticmethod
    def reply(order, outcome, **fields):
        step = step_of(order, "a")
        return Reply(
            step=step.id, task=step.task_id, attempt=1, outcome=outcome, code="", message="",
            tries=1, started=0.0, ended=0.0, by="x", generation=1, **fields,
        )  # fmt: skip

    def test_effect_is_for_a_person(self, shop, passed_over):
        record([self.reply(passed_over, "done", result={"id": "p1"})])
        alert = Alert.objects.get(closed_at=None)
        assert (alert.severity, alert.fingerprint.partition("/")[0]) == ("critical", "late_effect")
        assert Event.objects.filter(step=step_of(passed_over, "a"), kind="late").exists()
        assert violations() == []
        undo(step_of(passed_over, "a").task_id, actor="ann", reason="no")
        shop.finish()
        assert (passed_over.state, passed_over.undone) == ("undone", ["b"])
        assert passed_over.steps["a"] == "skipped"
        assert violations() == []

    def test_refusal_changes_nothing(self, passed_over):
        record([self.reply(passed_over, "rejected", result={})])
        assert not Alert.objects.filter(closed_at=None).exists()
        assert passed_over.steps["a"] == "skipped"


class TestAmendment:
    def test_condition_of_a_waiting_step_is_that_of_the_new_input(self, declare, shop):
        declare("amended", call("a"), call("b", "bank", after=["a"], when=field("x")))
        shop.script("carrier.book", outcomes.rejected("no"), outcomes.done(id="p"))
        order = shop.submit("amended", {"x": True})
        shop.go()
        step, amendment = step_of(order, "a"), Amendment(data={"x": False})
        resubmit(step.id, attempt=1, actor="ann", reason="not needed", amendment=amendment)
        shop.go()
        assert order.steps == {"a": "processed", "b": "skipped"}
        assert violations() == []


class TestRefusedInDoubt:
    @pytest.mark.parametrize("refused", [{}, {"refused": "undo"}])
    def test_undo_settles_it_at_once_and_counts_no_failure(self, declare, shop, refused):
        """The refusal shows that there was an effect: it is found under the key, and undone."""
        shop.policy("carrier", on_rejection="error" if refused else "undo")
        refusal = Outcome(fault=lambda: Rejected("refused", in_doubt=True))
        shop.script("carrier.book", refusal, outcomes.done(id="p1"))
        declare("one", call("a", refused=refused))
        order = shop.submit("one")
        shop.go()
        assert (order.state, order.undone) == ("undone", ["a"])
        assert step_of(order, "a").failure_count == 0
        assert violations() == []


class TestHold:
    def test_held_task_goes_on_past_what_is_skipped(self, declare, shop):
        declare(
            "held", call("a"), call("b", "bank", after=["a"], when=field("x")),
            call("c", "bank", after=["b"]),
        )  # fmt: skip
        first_hold = hold(actor="ann", reason="x", agent="carrier")
        order = shop.submit("held", {"x": False})
        shop.go()
        task = Task.objects.get(reference=order.reference)
        own = hold(actor="ann", reason="x", task=task.id)
        release(first_hold.id, actor="ann", reason="up")
        shop.go()
        assert order.steps == {"a": "pending", "b": "waiting", "c": "waiting"}
        release(own.id, actor="ann", reason="up")
        shop.go()
        assert order.steps == {"a": "processed", "b": "skipped", "c": "processed"}


class TestSize:
    def test_500_steps_are_skipped_by_as_many_statements_as_ten(self, declare):
        counts = {}
        for count in (10, 500):
            chain = [
                call(f"s{n}", after=[f"s{n - 1}" if n else "sort"], when=result("sort", "go"))
                for n in range(count)
            ]
            sort = Declared(name="sort", compute=dict, request={"go": False})
            task = new_task(workflow=declare(f"chain{count}", sort, *chain), data={})
            with CaptureQueriesContext(connection) as queries:
                run_once("scheduler-1", [], [""])
            counts[count] = len(queries)
            states = task.steps.exclude(name="sort").values_list("process_state", flat=True)
            assert set(states) == {"skipped"}
        assert counts[10] == counts[500]
        assert violations() == []

    def test_condition_may_be_deep_and_wide(self, declare, shop):
        deep = field("x")
        for _ in range(200):
            deep = not_(deep)
        wide = first(*[result("a", f"no{n}") for n in range(500)], done("a"))
        declare("odd", call("a", when=deep), call("b", after=["a"], when=wide))
        orders = [shop.submit("odd", {"x": value}) for value in (True, False)]
        shop.go()
        assert [list(order.steps.values()) for order in orders] == [
            ["processed"] * 2, ["skipped"] * 2,
        ]  # fmt: skip
