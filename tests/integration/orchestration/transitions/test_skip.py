"""Steps that are not needed: by their condition, or as a refusal that the workflow passes over."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from orchestration import api, registry
from orchestration.agents.actions import action
from orchestration.agents.errors import Rejected
from orchestration.agents.http import HttpAgent
from orchestration.models import Alert, Event, Incident, StatusMessage, Step, Task
from orchestration.payloads.placeholders import (
    Unresolved,
    done,
    field,
    first,
    key,
    not_,
    passed,
    result,
)
from orchestration.scheduler import run_once
from orchestration.testing import outcomes
from orchestration.transitions.holds import hold, release
from orchestration.transitions.restored import doubt
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.engine import new_task

pytestmark = pytest.mark.django_db


class Carrier(HttpAgent):
    name = "carrier"
    base_url = "http://127.0.0.1:9"

    @action
    async def book(self, call):
        """Book a parcel."""
        return await self.post(call, "/book", body=call.payload, expect={"id": str})

    @action
    async def cancel(self, call):
        """Cancel a parcel."""
        return await self.post(call, "/cancel", body=call.payload)


class Bank(Carrier):
    name = "bank"


def sort(request):
    """Say what an order needs."""
    if request["cents"] < 0:
        raise Rejected("negative", "an order of less than nothing")
    return {"ships": not request["digital"], "costs": request["cents"] > 0}


def call(name, agent="carrier", **fields):
    undo = {"undo": "cancel", "undo_request": {"key": key(name)}}
    return Declared(name=name, agent=agent, action="book", **{**undo, **fields})


SORT = Declared(
    name="sort", compute=sort, request={"digital": field("digital"), "cents": field("cents")}
)
SHOP = Workflow(
    name="shop",
    steps=[
        SORT,
        call("ship", after=["sort"], when=result("sort", "ships")),
        call("track", after=["ship"], when=done("ship"), request={"of": result("ship", "id")}),
        call("pay", "bank", after=["track"], when=result("sort", "costs")),
        call(
            "letter", "bank", after=["pay"], request={"paid": result("pay", "id", default="free")}
        ),
    ],
)
EITHER = Workflow(
    name="either",
    steps=[
        call("a", request={"to": field("to")}, refused={"not_served": "pass"}),
        call("b", "bank", after=["a"], when=passed("a", "not_served")),
        call(
            "c",
            "bank",
            after=["b"],
            request={"parcel": first(result("a", "id"), result("b", "id"))},
        ),
    ],
)


@pytest.fixture
def declare(monkeypatch):
    for agent in (Carrier, Bank):
        monkeypatch.setitem(registry.agents, agent.name, agent)

    def add(workflow):
        monkeypatch.setitem(registry.workflows, workflow.name, workflow)
        return workflow.name

    add(SHOP)
    add(EITHER)
    return add


@pytest.fixture
def shop(declare, run):
    run.policy("carrier", tries=1)
    run.script("carrier.book", outcomes.done(id="p1"))
    run.script("bank.book", outcomes.done(id="b1"))
    return run


def ask_undo(task):
    api.request_undo(task.workflow, task.reference, actor="ann", reason="no", id=uuid4())


def quiet():
    """Return whether no failure was reported."""
    return not (Incident.objects.exists() or Alert.objects.exists())


class TestCondition:
    def test_order_that_ships_nothing_ends_while_its_carrier_is_held(self, shop):
        hold(actor="ann", reason="down", agent="carrier")
        order = shop.submit("shop", {"digital": True, "cents": 5})
        shop.go()
        assert order.state == "processed"
        assert order.steps == {
            "sort": "processed", "ship": "skipped", "track": "skipped", "pay": "processed",
            "letter": "processed",
        }  # fmt: skip
        assert {called.name for called in order.calls()} == {"bank.book"}
        assert quiet()

    def test_undo_leaves_out_what_was_skipped(self, shop):
        order = shop.submit("shop", {"digital": True, "cents": 5})
        shop.go()
        ask_undo(order)
        shop.go()
        assert (order.state, order.undone) == ("undone", ["letter", "pay"])
        assert order.steps["ship"] == "skipped"
        assert not shop.calls("carrier.cancel")

    def test_default_stands_for_the_result_of_a_skipped_step(self, shop):
        order = shop.submit("shop", {"digital": False, "cents": 0})
        shop.go()
        assert order.steps["pay"] == "skipped"
        ship, track, letter = order.calls()
        assert [ship.step, track.step, letter.step] == ["ship", "track", "letter"]
        assert track.payload == {"of": "p1"}
        assert letter.payload == {"paid": "free"}

    def test_what_comes_after_is_released_in_the_same_transaction(self, declare):
        many = [SORT, *(
            call(f"s{number}", after=[f"s{number - 1}" if number else "sort"], when=result("sort", "ships"))
            for number in range(30)
        ), call("last", after=["s29"])]  # fmt: skip
        declare(Workflow(name="many", steps=many))
        task = new_task(workflow="many", data={"digital": True, "cents": 1})
        run_once("scheduler-1", [], [""])
        states = dict(task.steps.values_list("name", "process_state"))
        assert states.pop("sort") == "processed"
        assert states.pop("last") in {"pending", "processing"}
        assert set(states.values()) == {"skipped"}

    def test_condition_without_a_value_is_an_error_for_a_person(self, declare, run):
        declare(Workflow(name="odd", steps=[
            call("a"), call("b", after=["a"], when=result("a", "risky")),
        ]))  # fmt: skip
        run.script("carrier.book", outcomes.done(id="p1"))
        order = run.submit("odd")
        run.go()
        assert order.steps == {"a": "processed", "b": "error"}
        assert order.step("b").error_message == "the result of a has no risky"
        assert not order.step("b").attempt

    def test_what_waits_as_the_task_is_undone_is_cancelled(self, shop):
        hold(actor="ann", reason="down", agent="carrier")
        order = shop.submit("shop", {"digital": False, "cents": 0})
        shop.go()
        ask_undo(order)
        shop.go()
        assert order.state == "undone"
        assert set(order.steps.values()) == {"processed", "cancelled"}


class TestRestored:
    def test_step_in_doubt_after_a_restore_is_done_again_though_not_needed(self, shop, declare):
        declare(Workflow(name="two", steps=[
            call("a"), call("b", "bank", after=["a"], when=result("a", "wanted_too")),
        ]))  # fmt: skip
        shop.script("carrier.book", outcomes.done(id="p1", wanted_too=False))
        held = hold(actor="ann", reason="restored", agent="carrier")
        order = shop.submit("two")
        shop.go()
        step = Step.objects.get(task__reference=order.reference, name="b")
        doubt({step.id: 1}, shop.clock.now - timedelta(hours=1), actor="ann", reason="restored")
        release(held.id, actor="ann", reason="up")
        shop.go()
        assert order.steps == {"a": "processed", "b": "processed"}


class TestFirstSteps:
    def test_first_step_is_skipped_as_the_task_is_made(self, declare, shop):
        declare(Workflow(name="gift", steps=[
            call("pay", "bank", when=field("costs")), call("wrap", after=["pay"]),
        ]))  # fmt: skip
        order = shop.submit("gift", {"costs": False})
        shop.go()
        assert order.steps == {"pay": "skipped", "wrap": "processed"}
        again = shop.submit("gift", {"costs": 3})
        shop.go()
        assert again.steps == {"pay": "processed", "wrap": "processed"}

    def test_task_without_a_step_that_is_needed_has_ended_at_once(self, declare, shop, monkeypatch):
        heard = []
        monkeypatch.setitem(registry.receivers, "hotel", heard.extend)
        declare(Workflow(name="nothing", steps=[
            call("a", when=field("go")), call("b", after=["a"], when=done("a")),
        ]))  # fmt: skip
        order = shop.submit("nothing", {"go": False}, reply_to="hotel")
        shop.go()
        assert (order.state, set(order.steps.values())) == ("processed", {"skipped"})
        assert Task.objects.get(reference=order.reference).ended_at is not None
        assert [status.kind.value for status in heard] == ["received", "completed"]
        assert not StatusMessage.objects.filter(refused_at__isnull=False).exists()

    def test_input_without_the_field_of_a_condition_is_refused(self, declare, shop):
        declare(Workflow(name="gift", steps=[call("pay", when=field("costs"))]))
        declare(Workflow(name="kind", steps=[call("pay", when=field("costs", default=True))]))
        with pytest.raises(Unresolved, match=r"has no costs \(did you mean 'cost'"):
            shop.submit("gift", {"cost": 3})
        task = shop.submit("kind", {})
        shop.go()
        assert task.state == "processed"


class TestRefusal:
    def test_another_service_does_it_instead(self, shop):
        shop.script("carrier.book", outcomes.rejected("not_served", "an island"))
        order = shop.submit("either", {"to": "Sark"})
        shop.go()
        assert order.state == "processed"
        assert order.steps == {"a": "skipped", "b": "processed", "c": "processed"}
        assert order.step("a").error_code == "not_served"
        assert order.calls()[-1].payload == {"parcel": "b1"}
        assert quiet()
        assert not Event.objects.filter(task__reference=order.reference).exists()
        ask_undo(order)
        shop.go()
        assert (order.state, order.undone) == ("undone", ["c", "b"])
        assert not shop.calls("carrier.cancel")

    def test_the_other_is_skipped_where_the_first_was_done(self, shop):
        order = shop.submit("either", {"to": "Bath"})
        shop.go()
        assert order.steps == {"a": "processed", "b": "skipped", "c": "processed"}
        assert order.calls()[-1].payload == {"parcel": "p1"}

    def test_any_other_refusal_is_what_the_policy_says(self, shop):
        shop.script("carrier.book", outcomes.rejected("no_credit"))
        order = shop.submit("either", {"to": "Sark"})
        shop.go()
        assert order.steps == {"a": "error", "b": "waiting", "c": "waiting"}
        shop.policy("carrier", on_rejection="undo")
        second = shop.submit("either", {"to": "Sark"})
        shop.go()
        assert second.state == "undone"

    def test_refusal_of_what_may_have_been_done_is_not_passed_over(self, shop):
        shop.script(
            "carrier.book",
            outcomes.silent(happened=False),
            outcomes.rejected("not_served", stored=False),
        )
        order = shop.submit("either", {"to": "Sark"})
        shop.finish()
        assert order.steps == {"a": "error", "b": "waiting", "c": "waiting"}
        assert order.step("a").in_doubt

    @pytest.mark.parametrize(
        ("follows", "state"),
        [("error", "error"), ("wait", "error"), ("undo", "undone"), ("pass", "processed")],
    )
    def test_what_follows_is_by_code_before_the_policy(self, declare, shop, follows, state):
        shop.policy(
            "carrier", on_rejection="error" if follows == "undo" else "undo", resolve_within=60.0
        )
        declare(Workflow(name="one", steps=[call("a", refused={"no": follows, "*": "error"})]))
        shop.script("carrier.book", outcomes.rejected("no"))
        order = shop.submit("one")
        shop.go()
        assert order.state == state
        if follows == "wait":
            assert order.step("a").resolve_by is not None
            shop.wait(61)
            assert order.state == "undone"

    def test_any_code_is_meant_by_a_star(self, declare, shop):
        declare(Workflow(name="any", steps=[call("a", refused={"*": "pass", "fraud": "error"})]))
        shop.script("carrier.book", outcomes.rejected("x"), outcomes.rejected("fraud"))
        passed_over = shop.submit("any")
        shop.go()
        fraud = shop.submit("any")
        shop.go()
        assert (passed_over.state, fraud.state) == ("processed", "error")

    def test_computed_step_may_be_passed_over(self, declare, shop):
        declare(Workflow(name="sums", steps=[
            replace(SORT, refused={"negative": "pass"}),
            call("pay", "bank", after=["sort"], when=done("sort")),
            call("tell", "bank", after=["pay"], when=not_(done("sort"))),
        ]))  # fmt: skip
        order = shop.submit("sums", {"digital": False, "cents": -1})
        shop.go()
        assert order.steps == {"sort": "skipped", "pay": "skipped", "tell": "processed"}

    def test_mistake_in_code_is_passed_over_only_by_its_own_name(self, declare, shop):
        def broken(request):
            return {"share": 1 / request["parts"]}

        sums = Declared(name="sum", compute=broken, request={"parts": field("parts")})
        pay = call("pay", "bank", after=["sum"], when=done("sum"))
        refusals = {"any": {"*": "pass"}, "named": {"compute_failed": "pass"}}
        for name, refused in refusals.items():
            declare(Workflow(name=name, steps=[replace(sums, refused=refused), pay]))
        orders = [shop.submit(name, {"parts": 0}) for name in refusals]
        shop.go()
        assert [order.steps["sum"] for order in orders] == ["error", "skipped"]

    def test_resubmitted_step_that_is_refused_is_passed_over(self, shop):
        shop.script("carrier.book", outcomes.rejected("no_credit"), outcomes.rejected("not_served"))
        order = shop.submit("either", {"to": "Sark"})
        shop.go()
        step = order.step("a")
        api.request_resubmit(
            "either", order.reference, step="a", attempt=step.attempt, actor="ann", reason="again",
            id=uuid4(),
        )  # fmt: skip
        shop.go()
        assert order.steps == {"a": "skipped", "b": "processed", "c": "processed"}
        assert not Alert.objects.filter(closed_at=None).exists()
