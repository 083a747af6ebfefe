"""Steps that are done by child tasks."""

import pytest

from orchestration import registry
from orchestration.models import Alert, Join, Task, Wait
from orchestration.payloads.placeholders import field, item, key, result
from orchestration.testing import outcomes
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
        assert not (Join.objects.exists() or Wait.objects.exists() or Alert.objects.exists())

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
