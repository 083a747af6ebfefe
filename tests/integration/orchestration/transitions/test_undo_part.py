"""Some steps of a task are undone, with all that come after them; the others go on."""

from uuid import uuid4

import pytest

from orchestration import registry
from orchestration.api import Step, Workflow, field, item, key
from orchestration.models import Alert, Event, StatusMessage, Task, TaskRequest, UndoRequest
from orchestration.models import Step as Recorded
from orchestration.testing import outcomes
from orchestration.transitions import undo_requests
from orchestration.transitions.locked_task import lock
from orchestration.transitions.replies import record
from orchestration.transitions.requested_undos import begin_requested
from orchestration.transitions.resubmit import resubmit
from orchestration.transitions.settle import finish
from orchestration.transitions.undo import undo_part
from tests.support.engine import claimed, new_task, reply_to, step_of
from tests.support.violations import violations

pytestmark = pytest.mark.django_db
ACCEPTED = []


def greet(name, *after, **fields):
    """Return a step whose undo goes by its key."""
    undo = {"undo": "take_back", "undo_request": {"key": key(name)}}
    return Step(
        name=name, agent="greeter", action="greet", after=after, request={"to": name},
        **{**undo, **fields},
    )  # fmt: skip


@pytest.fixture
def declare(monkeypatch):
    """Declare a workflow of two branches: `a` before `b`, and `c` before `d`."""

    def add(*steps, name="trip", **fields):
        steps = steps or (greet("a"), greet("b", "a"), greet("c"), greet("d", "c"))
        declared = Workflow(
            name=name,
            steps=list(steps),
            accepted=ACCEPTED.extend,
            **{"owner_application": "travel", **fields},
        )
        monkeypatch.setitem(registry.workflows, name, declared)

    ACCEPTED.clear()
    add()
    return add


@pytest.fixture
def trip(declare, run):
    """Return a task that is posted."""
    run.policy("greeter", tries=1)
    return run.submit("trip")


@pytest.fixture(autouse=True)
def audited(run):
    """Have the audit find nothing wrong in the end, but for messages that no application takes."""
    yield
    assert not [breach for breach in violations() if breach.invariant != 12]


def undo(run, task, *steps):
    """Ask for the undo of steps; return what became of the request."""
    number = uuid4()
    task.handle.undo(actor="ann", reason="no more", id=number, steps=steps)
    run.go()
    return TaskRequest.objects.get(request=number).refusal


def sent(task):
    """Return what was sent, in order: the names of steps, and those of undos after a minus sign."""
    return [
        f"-{call.step}" if call.name == "greeter.take_back" else call.step for call in task.calls()
    ]


def messages():
    """Return the kinds of messages to its application, but for those about steps."""
    rows = StatusMessage.objects.exclude(kind="step").order_by("number")
    return list(rows.values_list("kind", flat=True))


class TestProcessed:
    def test_steps_and_what_comes_after_them_are_undone_in_reverse(self, run, trip):
        run.go()
        assert trip.state == "processed"
        assert undo(run, trip, "a") == ""
        assert trip.state == "processed"
        assert sent(trip)[4:] == ["-b", "-a"]
        assert trip.undo_steps == {"a": "processed", "b": "processed"}

    def test_its_application_gets_a_message_and_its_history_names_the_person(self, run, trip):
        run.go()
        undo(run, trip, "b")
        (accepted,) = ACCEPTED
        assert accepted.what == "undo_part"
        assert messages()[-3:] == ["completed", "undoing_part", "completed"]
        message = StatusMessage.objects.get(kind="undoing_part")
        assert message.detail == {"steps": ["b"], "request": str(accepted.id)}
        event = Event.objects.get(kind="undo")
        assert (event.actor, event.detail["steps"]) == ("ann", ["b"])

    def test_it_is_not_overdue_by_the_time_that_passed_before(self, run, declare):
        declare(owner_application="")  # no status message waits that long
        run.policy("greeter", tries=1)
        trip = run.submit("trip")
        run.go()
        run.wait(10 * registry.workflows["trip"].time_allowed)
        run.script("greeter.take_back", outcomes.transient())
        undo(run, trip, "b")
        run.wait(5)
        assert trip.state == "processing"
        assert not Task.objects.get(reference=trip.reference).overdue

    def test_other_part_can_be_undone_later_and_then_the_rest(self, run, trip):
        run.go()
        assert undo(run, trip, "b") == ""
        assert undo(run, trip, "a") == ""
        assert sent(trip)[4:] == ["-b", "-a"]
        trip.handle.undo(actor="ann", reason="all", id=uuid4())
        run.go()
        assert trip.state == "undone"
        assert sent(trip)[4:] == ["-b", "-a", "-d", "-c"]

    def test_part_that_was_undone_is_not_undone_again(self, run, trip):
        run.go()
        undo(run, trip, "a")
        assert undo(run, trip, "b") == "NOT_UNDOABLE"
        assert len(trip.calls()) == 6

    def test_task_is_undone_where_nothing_else_is_left(self, run, trip):
        run.go()
        assert undo(run, trip, "a", "c") == ""
        assert trip.state == "undone"
        assert len(trip.calls()) == 8


class TestRefused:
    @pytest.mark.parametrize("names", [("x",), ("a", "x")])
    def test_unknown_step_changes_nothing(self, run, trip, names):
        run.go()
        assert undo(run, trip, *names) == "NO_SUCH_STEP"
        assert trip.undo_steps == {}

    @pytest.mark.parametrize("steps", [[], (), "a", ""])
    def test_list_without_a_name_is_not_the_whole_task(self, run, trip, steps):
        run.go()
        with pytest.raises(ValueError, match="at least one step"):
            trip.handle.undo(actor="ann", reason="no more", id=uuid4(), steps=steps)
        run.go()
        assert (trip.state, TaskRequest.objects.count()) == ("processed", 0)

    def test_task_that_is_undone(self, run, trip):
        run.go()
        trip.handle.undo(actor="ann", reason="all", id=uuid4())
        run.go()
        assert undo(run, trip, "a") == "NOT_UNDOABLE"

    def test_what_is_irreversible_prevents_it(self, declare, run):
        declare(
            greet("a"),
            greet("b", "a", undo=None, undo_request=None, irreversible="sent"),
            greet("c"),
        )
        trip = run.submit("trip")
        run.go()
        assert undo(run, trip, "a") == "IRREVERSIBLE"
        assert (trip.state, trip.undo_steps) == ("processed", {})
        assert undo(run, trip, "c") == ""
        assert trip.undo_steps == {"c": "processed"}

    @pytest.mark.parametrize("posted", [{}, {"steps": "a"}, {"steps": [1]}, [1], None])
    def test_request_that_was_posted_by_sql_may_have_anything(self, run, trip, posted):
        run.go()
        TaskRequest.objects.create(
            request=uuid4(), workflow="trip", reference=trip.reference, what="undo_part",
            amendment=posted or "null", actor="ann", because="no more",
        )  # fmt: skip
        run.go()
        assert TaskRequest.objects.get().refusal == "INVALID"
        assert trip.undo_steps == {}


class TestUnderWay:
    def test_what_was_not_begun_is_cancelled_and_the_rest_goes_on(self, run, trip):
        run.script("greeter.greet", outcomes.transient(), outcomes.done())
        run.go()
        trip.handle.undo(actor="ann", reason="no more", id=uuid4(), steps=["b"])
        run.finish()
        assert trip.state == "processed"
        assert trip.steps == {
            "a": "processed",
            "b": "cancelled",
            "c": "processed",
            "d": "processed",
        }
        assert "b" not in sent(trip)

    def test_first_message_is_that_of_the_task(self, run, trip):
        trip.handle.undo(actor="ann", reason="no more", id=uuid4(), steps=["a"])
        run.finish()
        assert trip.steps == {
            "a": "cancelled",
            "b": "cancelled",
            "c": "processed",
            "d": "processed",
        }
        assert messages() == ["received", "undoing_part", "completed"]

    @pytest.mark.parametrize("happened", [True, False])
    def test_step_in_doubt_is_settled_first(self, run, trip, happened):
        run.script("greeter.greet", outcomes.in_doubt(happened=happened), outcomes.done())
        run.go()
        assert trip.steps["a"] == "pending"
        undo(run, trip, "a")
        run.finish()
        assert trip.state == "processed"
        assert trip.undone == ["a"]
        assert trip.steps["b"] == "cancelled"
        assert sent(trip)[-1] == "-a"

    @pytest.mark.parametrize(
        ("outcome", "ends_as", "undo_ends_as"),
        [("rejected", "cancelled", "cancelled"), ("done", "processed", "pending")],
    )
    @pytest.mark.usefixtures("trip")
    def test_reply_to_a_step_that_an_agent_has_is_waited_for(self, outcome, ends_as, undo_ends_as):
        task = new_task(workflow="trip")
        first, _ = claimed()
        assert undo_part(task.id, ["a"], actor="ann", reason="no more") is None
        of_a = Recorded.objects.filter(task=task, name="a").order_by("direction")
        assert list(of_a.values_list("process_state", flat=True)) == ["processing", "waiting"]
        record([reply_to(first, outcome)])
        assert list(of_a.values_list("process_state", flat=True)) == [ends_as, undo_ends_as]
        assert step_of(task, "b").process_state == "cancelled"
        task.refresh_from_db()
        assert task.state == "processing"

    def test_refusal_of_a_step_in_doubt_is_for_a_person_to_settle(self, run, trip):
        done = outcomes.done()
        run.script(
            "greeter.greet", outcomes.in_doubt(), done, done, outcomes.rejected("no", stored=False)
        )
        run.go()
        undo(run, trip, "a")
        run.jump()
        assert (trip.state, trip.steps["a"]) == ("error", "error")
        failed = Recorded.objects.get(name="a", direction="do")
        known = {"attempt": failed.attempt, "actor": "ann", "reason": "I asked"}
        assert resubmit(failed.id, nothing_done=True, **known) is None
        run.go()
        assert (trip.state, trip.steps["a"]) == ("processed", "cancelled")
        assert "-a" not in sent(trip)

    def test_step_in_error_is_given_up_and_the_task_goes_on(self, run, trip):
        run.script("greeter.greet", outcomes.rejected("no"), outcomes.done())
        run.go()
        assert trip.state == "error"
        assert undo(run, trip, "a") == ""
        assert trip.state == "processed"
        assert trip.steps["a"] == "cancelled"
        assert not Alert.objects.filter(closed_at=None).exists()
        assert messages()[-2:] == ["action_needed", "completed"]  # the last one of its transaction

    @pytest.mark.usefixtures("trip")
    def test_step_for_which_the_whole_task_was_to_be_undone(self):
        task = new_task(workflow="trip")
        first, second = claimed()
        record([reply_to(first, "transient"), reply_to(second)])
        change = lock([task.id])[task.id]
        undo_requests.request([(change, change.steps[first.step], "it failed")], by="supervisor")
        finish([change], by="supervisor")
        assert undo_part(task.id, ["a"], actor="ann", reason="no more") is None
        assert not UndoRequest.objects.exists()
        begin_requested([task.id])
        task.refresh_from_db()
        assert task.state == "processing"

    @pytest.mark.usefixtures("trip")
    def test_effect_that_shows_after_its_step_was_cancelled_is_undone(self):
        task = new_task(workflow="trip", reply_to="travel")
        first, second = claimed()
        record([reply_to(first, "transient"), reply_to(second)])
        assert undo_part(task.id, ["a"], actor="ann", reason="no more") is None
        (last,) = claimed()
        record([reply_to(last)])
        task.refresh_from_db()
        assert task.state == "processed"
        record([reply_to(first)])
        task.refresh_from_db()
        assert task.state == "processing"
        assert messages()[-1] == "undoing_part"
        (undoing,) = claimed()
        assert undoing.key == f"{task.id}:a:undo:1"
        record([reply_to(undoing)])
        task.refresh_from_db()
        assert (task.state, messages()[-1]) == ("processed", "completed")

    def test_what_was_accepted_is_undone(self, declare, run):
        declare(greet("a"), greet("b"))
        trip = run.submit("trip")
        run.script("greeter.greet", outcomes.later({"id": "p"}, id="p1"), outcomes.done())
        run.go()
        name = next(name for name, state in trip.steps.items() if state == "awaiting")
        assert undo(run, trip, name) == ""
        assert (trip.state, trip.steps[name]) == ("processed", "cancelled")
        assert sent(trip)[-1] == f"-{name}"
        run.complete(trip, name, {"id": "p"})
        run.go()
        assert trip.steps[name] == "cancelled"


class TestUndoStep:
    def test_refused_undo_puts_the_task_in_error_until_it_is_resubmitted(self, run, trip):
        run.policy("greeter", on_rejection="undo")
        run.go()
        run.script("greeter.take_back", outcomes.rejected("no", stored=False), outcomes.done())
        undo(run, trip, "b")
        assert trip.state == "error"
        assert trip.undo_steps == {"b": "error"}
        failed = Recorded.objects.get(name="b", direction="undo")
        assert resubmit(failed.id, attempt=1, actor="ann", reason="mended") is None
        run.go()
        assert (trip.state, trip.undo_steps) == ("processed", {"b": "processed"})
        assert trip.steps["c"] == "processed"


class TestChildren:
    @pytest.fixture
    def order(self, declare, run):
        """Return a task whose step has three children, beside another step."""
        declare(greet("pack"), name="parcel")
        declare(
            greet("a"),
            Step(
                name="parcels", workflow="parcel", each=field("houses"), request={"house": item()}
            ),
            greet("last", "parcels"),
            greet("c"),
        )
        return run.submit("trip", {"houses": [1, 2, 3]})

    def children(self, order):
        tasks = Task.objects.filter(parent__task__reference=order.reference).order_by("position")
        return list(tasks.values_list("state", flat=True))

    def test_undo_of_the_step_undoes_its_children(self, run, order):
        run.go()
        assert order.state == "processed"
        assert undo(run, order, "parcels") == ""
        assert order.state == "processed"
        assert self.children(order) == ["undone"] * 3
        assert order.undo_steps == {"parcels": "processed", "last": "processed"}
        assert order.steps["a"] == "processed"
        steps = [call.step for call in run.calls("greeter.take_back")]
        assert steps == ["last", "pack", "pack", "pack"]

    def test_undo_while_the_children_run(self, run, order):
        first = f"{order.reference}/parcels/0"
        run.script("greeter.greet", outcomes.transient(), outcomes.done(), reference=first)
        run.policy("greeter", tries=1)
        run.go()
        assert order.steps["parcels"] == "awaiting"
        undo(run, order, "parcels")
        run.finish()
        assert order.state == "processed"
        assert self.children(order) == ["undone"] * 3
        assert order.steps["parcels"] == "cancelled"

    def test_part_of_a_child(self, declare, run):
        declare(greet("pack"), greet("label"), name="parcel")
        declare(
            Step(name="parcels", workflow="parcel", each=field("houses"), request={"h": item()})
        )
        order = run.submit("trip", {"houses": [1]})
        run.go()
        child = run.task("parcel", f"{order.reference}/parcels/0")
        assert undo(run, child, "pack") == ""
        assert (child.state, child.undone) == ("processed", ["pack"])
        assert order.state == "processed"
