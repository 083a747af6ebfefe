"""Steps that are done by child tasks."""

from uuid import uuid4

import pytest
from django.utils import timezone

from orchestration import api, conf, registry, submission
from orchestration.decisions.input_change import TakenBy
from orchestration.models import Alert, Join, Step, Task, TaskRequest, Wait
from orchestration.payloads.placeholders import field, item, key, result
from orchestration.testing import outcomes
from orchestration.transitions import children as making
from orchestration.transitions.input_changes import change_input
from orchestration.transitions.resubmit import done_by_hand, resubmit
from orchestration.transitions.undo import undo as force_undo
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow

pytestmark = pytest.mark.django_db


def greet(name, *, after=(), request=None, **fields):
    undo = {"undo": "take_back", "undo_request": {"key": key(name)}}
    return Declared(
        name=name, agent="greeter", action="greet", after=after,
        request={"to": field("house")} if request is None else request, **{**undo, **fields},
    )  # fmt: skip


def children(*, after=("sort",), each=None, **fields):
    return Declared(
        name="parcels",
        workflow="parcel",
        each=field("houses") if each is None else each,
        request={"house": item("name"), "order": field("order")},
        after=after,
        **fields,
    )


SORT = greet("sort", request={"to": "sorter"})
LAST = greet("last", after=["parcels"], request={"to": result("parcels", "items")})


@pytest.fixture
def declare(monkeypatch):
    def add(*steps, name="order", **fields):
        workflow = Workflow(name=name, steps=list(steps), time_allowed=1e6, **fields)
        monkeypatch.setitem(registry.workflows, name, workflow)

    add(greet("pack"), name="parcel", result={"pack": result("pack"), "of": field("order")})
    return add


@pytest.fixture
def run(declare, run):
    """A run that knows the workflow of the children."""
    assert "parcel" in registry.workflows
    return run


def houses(*names):
    return {"houses": [{"name": name} for name in names], "order": 7}


def of(run, task, position, step="parcels", workflow="parcel"):
    return run.task(workflow, f"{task.reference}/{step}/{position}")


class TestDone:
    def test_step_ends_with_the_results_of_its_children(self, declare, run):
        declare(SORT, children(), LAST)
        run.script("greeter.greet", outcomes.done(id="g"))
        order = run.submit("order", houses("a", "b", "c"))
        run.go()
        assert order.state == "processed"
        items = [{"pack": {"id": "g"}, "of": 7}] * 3
        assert order.result("parcels") == {"items": items}
        assert order.calls()[-1].payload == {"to": items}
        assert [of(run, order, number).state for number in range(3)] == ["processed"] * 3
        assert [of(run, order, number).calls()[0].payload for number in range(3)] == [
            {"to": "a"}, {"to": "b"}, {"to": "c"},
        ]  # fmt: skip
        assert not any(model.objects.exists() for model in (Join, Wait, Alert))

    def test_no_items_end_at_once(self, declare, run):
        declare(SORT, children(), LAST)
        order = run.submit("order", houses())
        run.go()
        assert (order.state, order.result("parcels")) == ("processed", {"items": []})
        assert not Task.objects.filter(parent__isnull=False).exists()

    def test_without_each_there_is_one_child(self, declare, run):
        step = Declared(name="parcels", workflow="parcel", request={"house": "x", "order": 1})
        declare(step)
        order = run.submit("order")
        run.go()
        assert (order.state, len(order.result("parcels")["items"])) == ("processed", 1)

    def test_first_step_may_have_children(self, declare, run):
        declare(children(after=()), LAST)
        order = run.submit("order", houses("a", "b"))
        run.go()
        assert order.state == "processed"

    def test_children_may_end_as_they_are_made(self, declare, run):
        declare(greet("pack", when=False), name="parcel")
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a", "b"))
        run.go()
        assert (order.state, order.result("parcels")) == ("processed", {"items": [{}, {}]})

    def test_children_may_be_computed(self, declare, run):
        compute = Declared(
            name="pack", compute=lambda request: request, request={"x": field("house")}
        )
        declare(compute, name="parcel", result=result("pack"))
        declare(children(after=()))
        order = run.submit("order", houses("a", "b"))
        run.go()
        assert order.result("parcels") == {"items": [{"x": "a"}, {"x": "b"}]}

    def test_children_may_have_children(self, declare, run):
        box = Declared(name="boxes", workflow="box", each=[1, 2], request={"box": item()})
        declare(box, name="parcel", result=result("boxes"))
        declare(
            greet("wrap", request={"to": field("box")}), name="box", result={"box": field("box")}
        )
        declare(children(after=()))
        order = run.submit("order", houses("a", "b"))
        run.go()
        inner = {"items": [{"box": 1}, {"box": 2}]}
        assert (order.state, order.result("parcels")) == ("processed", {"items": [inner, inner]})
        assert run.task("box", f"{order.reference}/parcels/1/boxes/0").state == "processed"

    def test_children_have_what_their_parent_has(self, declare, run):
        declare(children(after=()))
        order = run.submit("order", houses("a"), priority=2, fairness_key="ada")
        run.script("greeter.greet", outcomes.later({}))
        run.go()
        parent = Task.named("order", order.reference)
        child = Task.objects.get(parent__task=parent)
        assert (child.priority, child.fairness_key, child.reply_to) == (2, "ada", "")
        assert child.complete_by <= parent.complete_by
        assert (child.position, child.reference) == (0, f"{order.reference}/parcels/0")


def later(run, order, *positions):
    """Have the service accept the calls of some children, and end them later."""
    for position in positions:
        child = f"{order.reference}/parcels/{position}"
        run.script("greeter.greet", outcomes.later({}), reference=child)


def ask_undo(task):
    api.request_undo(task.workflow, task.reference, actor="ann", reason="no", id=uuid4())


def resubmit_failed(task, run):
    """Have the failed step of a task tried again, with a service that does it."""
    run.script("greeter.greet", outcomes.done(id="g"), reference=task.reference)
    failed = Step.objects.get(task__reference=task.reference, process_state="error")
    assert resubmit(failed.id, attempt=failed.attempt, actor="ann", reason="again") is None
    run.go()


def undone_in_turn(run):
    """Return the references of what was undone, in order."""
    return [call.reference for call in run.calls("greeter.take_back")]


class TestFailure:
    def test_child_in_error_is_not_an_error_of_its_parent(self, declare, run):
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a", "b"))
        failing = f"{order.reference}/parcels/1"
        run.script("greeter.greet", outcomes.rejected("no"), reference=failing)
        run.go()
        assert (order.state, order.steps["parcels"]) == ("processing", "awaiting")
        assert order.step("parcels").children == {"error": 1, "processed": 1}
        assert order.step("sort").children == {}
        assert of(run, order, 1).state == "error"
        resubmit_failed(of(run, order, 1), run)
        assert order.state == "processed"

    @pytest.mark.parametrize(
        ("refused", "state", "step"),
        [
            ({}, "error", "error"),
            ({"child_undone": "error"}, "error", "error"),
            ({"child_undone": "undo"}, "undone", "cancelled"),
            ({"child_undone": "pass"}, "processed", "processed"),
        ],
    )
    def test_child_undone_by_itself(self, declare, run, refused, state, step):
        declare(SORT, children(refused=refused), LAST)
        order = run.submit("order", houses("a", "b"))
        later(run, order, 1)
        run.go()
        ask_undo(of(run, order, 1))
        run.go()
        assert (order.state, order.steps["parcels"]) == (state, step)
        assert of(run, order, 1).state == "undone"
        assert of(run, order, 0).state == ("undone" if state == "undone" else "processed")
        if step == "processed":
            first, second = order.result("parcels")["items"]
            assert (first["of"], second) == (7, None)
        elif step == "error":
            assert order.step("parcels").error_code == "child_undone"

    def test_resubmit_makes_another_child_for_the_one_that_was_undone(self, declare, run):
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a", "b"))
        later(run, order, 1)
        run.go()
        ask_undo(of(run, order, 1))
        run.go()
        resubmit_failed(order, run)
        assert order.state == "processed"
        assert Task.objects.filter(parent__name="parcels").count() == 3
        assert of(run, order, "1.2").state == "processed"
        assert all(order.result("parcels")["items"])

    def test_late_step_keeps_its_children(self, declare, run):
        declare(SORT, children(ends_within=60), LAST)
        order = run.submit("order", houses("a", "b"))
        later(run, order, 1)
        run.wait(61)
        assert (order.state, order.step("parcels").error_code) == ("error", "late")
        resubmit_failed(order, run)
        assert order.steps["parcels"] == "awaiting"
        run.complete(of(run, order, 1), "pack", {"id": "x"})
        run.go()
        assert order.state == "processed"
        assert Task.objects.filter(parent__name="parcels").count() == 2

    def test_late_step_undoes_its_task(self, declare, run):
        declare(SORT, children(ends_within=60, late="undo"), LAST)
        order = run.submit("order", houses("a", "b"))
        later(run, order, 1)
        run.wait(61)
        assert order.state == "undone"
        assert {of(run, order, number).state for number in (0, 1)} == {"undone"}

    def test_enough_of_them(self, declare, run):
        declare(SORT, children(enough=2), LAST)
        order = run.submit("order", houses("a", "b", "c", "d"))
        later(run, order, 1, 3)
        run.go()
        assert order.state == "processed"
        items = order.result("parcels")["items"]
        assert [bool(value) for value in items] == [True, False, True, False]
        assert [of(run, order, number).state for number in range(4)] == [
            "processed", "undone", "processed", "undone",
        ]  # fmt: skip
        assert not Join.objects.exists()

    def test_all_of_them_where_enough_is_more(self, declare, run):
        declare(SORT, children(enough=5))
        order = run.submit("order", houses("a", "b"))
        run.go()
        assert (order.state, len(order.result("parcels")["items"])) == ("processed", 2)

    @pytest.mark.parametrize(
        ("data", "code", "message"),
        [
            ({"houses": "a", "order": 1}, "request_not_built", "each is 'a', not a list"),
            ({"houses": [{"nam": 1}], "order": 1}, "request_not_built", "the item has no name"),
            (
                {"houses": [{"name": 1}] * 9, "order": "x" * 500_000},
                "request_not_built",
                "are kept",
            ),
        ],
    )
    def test_items_that_are_not_a_list(self, declare, run, data, code, message):
        declare(SORT, children())
        order = run.submit("order", data)
        run.go()
        assert (order.state, order.step("parcels").error_code) == ("error", code)
        assert message in Step.objects.get(name="parcels").error_message

    def test_more_children_than_are_made(self, declare, run, monkeypatch):
        monkeypatch.setattr(making, "MOST", 2)
        declare(SORT, children())
        order = run.submit("order", houses("a", "b", "c"))
        run.go()
        assert order.step("parcels").error_code == "too_many_children"
        assert not Task.objects.filter(parent__isnull=False).exists()

    def test_input_that_a_child_does_not_take(self, declare, run):
        declare(
            SORT,
            Declared(name="parcels", workflow="parcel", each=[{}], request=item(), after=["sort"]),
        )
        order = run.submit("order")
        run.go()
        assert order.step("parcels").error_code == "child_refused"
        assert (
            "child 0: the input has no order, house"
            in Step.objects.get(name="parcels").error_message
        )

    def test_reference_of_another_task(self, declare, run):
        declare(SORT, children())
        run.submit("parcel", {"house": "x", "order": 1}, reference="A/parcels/1")
        order = run.submit("order", houses("a", "b"), reference="A")
        run.go()
        assert order.step("parcels").error_code == "reference_taken"
        assert not Task.objects.filter(parent__isnull=False).exists()

    def test_children_without_end(self, declare, run):
        inner = Declared(
            name="parcels", workflow="order", each=field("houses"), request={"houses": [1]}
        )
        declare(inner)
        run.submit("order", {"houses": [1]}, reference="A")
        run.go()
        (deepest,) = Step.objects.filter(process_state="error").select_related("task")
        assert deepest.task.reference.count("/parcels/") == making.DEEPEST - 1
        assert deepest.error_code == "children_too_deep"

    def test_workflow_that_no_release_declares(self, declare, run, monkeypatch):
        declare(SORT, children())
        order = run.submit("order", houses("a"))
        known = registry.workflows["parcel"]
        monkeypatch.delitem(registry.workflows, "parcel")
        run.go()
        assert order.steps["parcels"] == "pending"
        monkeypatch.setitem(registry.workflows, "parcel", known)
        run.wait(31)
        assert order.state == "processed"

    def test_result_that_a_child_does_not_have(self, declare, run):
        declare(greet("pack"), name="parcel", result={"id": result("pack", "missing")})
        declare(SORT, children())
        order = run.submit("order", houses("a"))
        run.go()
        assert order.step("parcels").error_code == "no_child_result"


class TestUndo:
    def test_children_are_undone_between_what_comes_after_and_before(self, declare, run):
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a", "b"))
        run.go()
        ask_undo(order)
        run.go()
        assert order.state == "undone"
        kids = [f"{order.reference}/parcels/{number}" for number in (0, 1)]
        called = undone_in_turn(run)
        assert (called[0], called[-1]) == (order.reference, order.reference)
        assert sorted(called[1:-1]) == kids
        assert order.undo_steps == dict.fromkeys(("sort", "parcels", "last"), "processed")

    def test_what_comes_before_waits_for_the_undo_of_children(self, declare, run):
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a", "b"))
        later(run, order, 1)
        run.go()
        stuck = f"{order.reference}/parcels/0"
        run.script("greeter.take_back", outcomes.rejected("no"), reference=stuck)
        ask_undo(order)
        run.go()
        assert (order.state, order.undo_steps) == (
            "undoing", {"sort": "waiting", "parcels": "awaiting"},
        )  # fmt: skip
        assert [of(run, order, number).state for number in (0, 1)] == ["error", "undone"]
        run.script("greeter.take_back", outcomes.done(), reference=stuck)
        resubmit_failed(of(run, order, 0), run)
        assert order.state == "undone"

    def test_children_that_run_are_undone(self, declare, run):
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a", "b"))
        later(run, order, 0, 1)
        run.go()
        ask_undo(order)
        run.go()
        assert order.state == "undone"
        assert {of(run, order, number).state for number in (0, 1)} == {"undone"}
        assert order.steps == {"sort": "processed", "parcels": "cancelled", "last": "cancelled"}

    def test_child_that_cannot_be_undone(self, declare, run):
        forever = {"undo": None, "undo_request": {}, "irreversible": "it is gone"}
        declare(greet("pack", **forever), name="parcel")
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a", "b"))
        run.go()
        ask_undo(order)
        run.go()
        assert order.state == "error"
        undo = Step.objects.get(name="parcels", direction="undo")
        assert (undo.process_state, undo.error_code) == ("error", "child_not_undone")
        assert f"{order.reference}/parcels/1" in undo.error_message
        for child in Task.objects.filter(parent__isnull=False):
            assert force_undo(child.id, actor="ann", reason="all the same", force=True) is None
        resubmit_failed(order, run)
        assert order.state == "undone"

    def test_undo_of_children_is_done_by_hand(self, declare, run):
        forever = {"undo": None, "undo_request": {}, "irreversible": "it is gone"}
        declare(greet("pack", **forever), name="parcel")
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a"))
        run.go()
        ask_undo(order)
        run.go()
        undo = Step.objects.get(name="parcels", direction="undo")
        by_hand = {"actor": "ann", "reason": "so", "result": {}}
        assert done_by_hand(undo.id, attempt=undo.attempt, **by_hand) is None
        run.go()
        assert order.state == "undone"
        assert of(run, order, 0).state == "processed"  # as the person decided

    def test_result_is_not_reported_of_a_step_with_children(self, declare, run):
        declare(SORT, children())
        order = run.submit("order", houses("a"))
        later(run, order, 0)
        run.go()
        request = uuid4()
        api.complete(
            "order", order.reference, "parcels", result={"items": []}, actor="a", id=request
        )
        run.go()
        assert TaskRequest.objects.get(request=request).refusal == "HAS_CHILDREN"
        assert order.steps["parcels"] == "awaiting"

    def test_grandchildren_are_undone(self, declare, run):
        box = Declared(name="boxes", workflow="box", each=[1, 2], request={"box": item()})
        declare(box, name="parcel")
        declare(greet("wrap", request={"to": field("box")}), name="box")
        declare(children(after=()))
        order = run.submit("order", houses("a", "b"))
        run.go()
        ask_undo(order)
        run.go()
        assert set(Task.objects.values_list("state", flat=True)) == {"undone"}
        assert len(undone_in_turn(run)) == 4

    def test_more_children_than_are_undone_at_once(self, declare, run, monkeypatch):
        monkeypatch.setattr(conf, "BATCH_SIZE", 3)
        declare(SORT, children())
        order = run.submit("order", houses(*"abcdefgh"))
        run.go()
        ask_undo(order)
        run.go()
        assert order.state == "undone"
        assert set(Task.objects.values_list("state", flat=True)) == {"undone"}

    def test_child_made_anew_is_undone_also_where_a_page_ends(self, declare, run, monkeypatch):
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a", "b"))
        later(run, order, 1)
        run.go()
        ask_undo(of(run, order, 1))
        run.go()
        resubmit_failed(order, run)
        assert order.state == "processed"
        # of two children for an item, the database gives the one first that was written last
        Task.objects.filter(reference__endswith="/parcels/1").update(ended_at=timezone.now())
        monkeypatch.setattr(conf, "BATCH_SIZE", 1)
        ask_undo(order)
        run.go()
        assert order.state == "undone"
        assert set(Task.objects.values_list("state", flat=True)) == {"undone"}

    def test_step_in_error_without_children(self, declare, run):
        declare(
            SORT,
            Declared(name="parcels", workflow="parcel", each=[{}], request=item(), after=["sort"]),
        )
        order = run.submit("order")
        run.go()
        ask_undo(order)
        run.go()
        assert (order.state, undone_in_turn(run)) == ("undone", [order.reference])

    def test_step_done_by_hand(self, declare, run):
        declare(SORT, children(ends_within=60))
        order = run.submit("order", houses("a", "b"))
        later(run, order, 1)
        run.wait(61)
        failed = Step.objects.get(name="parcels")
        assert (
            done_by_hand(
                failed.id, attempt=failed.attempt, actor="ann", reason="so", result={"items": []}
            )
            is None
        )
        run.go()
        assert (order.state, of(run, order, 1).state) == ("processed", "processing")
        ask_undo(order)
        run.go()
        assert set(Task.objects.values_list("state", flat=True)) == {"undone"}


class TestAmended:
    def amend(self, order, data):
        return change_input(order.id, registry.workflows["order"], data, actor="ann", reason="more")

    def test_children_are_made_of_the_new_list(self, declare, run):
        declare(children(after=()), LAST)
        order = run.submit("order", houses("a"))
        submission.take(1)
        assert self.amend(Task.objects.get(), houses("b", "c")) is None
        run.go()
        assert (order.state, len(order.result("parcels")["items"])) == ("processed", 2)
        assert [of(run, order, number).calls()[0].payload for number in range(2)] == [
            {"to": "b"}, {"to": "c"},
        ]  # fmt: skip

    def test_list_whose_children_are_made_does_not_change(self, declare, run):
        declare(SORT, children(), LAST)
        order = run.submit("order", houses("a"))
        later(run, order, 0)
        run.go()
        refusal = self.amend(Task.objects.get(parent=None), houses("a", "b"))
        assert refusal == TakenBy(("parcels",))
        assert Task.objects.get(parent=None).data == houses("a")
