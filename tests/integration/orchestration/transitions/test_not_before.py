"""Steps that wait for their time before they begin: while it has not come, they cost nothing."""

from datetime import timedelta
from uuid import uuid4

import pytest

from orchestration import api, registry
from orchestration.models import Alert, Attempt, Event, Incident, Step, Submission, Task, Wait
from orchestration.payloads.placeholders import done, field, first, key, not_, passed, result
from orchestration.testing import outcomes
from orchestration.transitions.overdue import mark_overdue
from orchestration.transitions.resubmit import resubmit
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Refused, Workflow
from tests.support.bank import Bank

pytestmark = pytest.mark.django_db
HOUR, DAY = 3600.0, 86_400.0


def call(name, after=(), **fields):
    undo = {"undo": "refund", "undo_request": {"key": key(name)}}
    return Declared(
        name=name, agent="bank", action="charge", after=after, **{"request": {"of": name}, **undo, **fields}
    )  # fmt: skip


PAY = call("pay")


@pytest.fixture
def declare(monkeypatch):
    monkeypatch.setitem(registry.agents, Bank.name, Bank)

    def add(*steps, name="w", time_allowed=HOUR, **fields):
        workflow = Workflow(name=name, steps=list(steps), time_allowed=time_allowed, **fields)
        monkeypatch.setitem(registry.workflows, name, workflow)

    return add


@pytest.fixture
def run(declare, run):
    """A run that knows the bank."""
    assert "bank" in registry.agents
    return run


def ask_undo(task):
    api.request_undo(task.workflow, task.reference, actor="ann", reason="no", id=uuid4())


def iso(moment):
    return moment.isoformat()


class TestItsTime:
    def test_seconds_count_from_when_its_turn_comes(self, declare, run):
        declare(PAY, call("ship", ["pay"], not_before=HOUR))
        run.script("bank.charge", outcomes.transient(retry_after=60), outcomes.done(id="1"))
        order = run.submit("w", {})
        run.wait(HOUR - 1)  # the first call failed, and was made again a minute later
        assert order.steps == {"pay": "processed", "ship": "waiting"}
        assert order.state == "processing"
        run.wait(50)
        assert order.steps["ship"] == "waiting"
        run.finish()
        assert order.state == "processed"
        (shipped,) = [
            call.at for call in run.calls("bank.charge") if call.payload == {"of": "ship"}
        ]
        assert HOUR + 60 <= shipped < HOUR + 70

    def test_first_step_waits_from_when_the_task_is_made(self, declare, run):
        declare(call("pay", not_before=HOUR))
        order = run.submit("w", {})
        run.wait(HOUR - 1)
        assert (order.state, order.steps) == ("pending", {"pay": "waiting"})
        assert not run.calls("bank.charge")
        run.wait(1)
        assert order.state == "processed"

    @pytest.mark.parametrize("ahead", [2 * HOUR, -HOUR, 0])
    def test_time_of_the_calendar(self, declare, run, ahead):
        declare(PAY, call("ship", ["pay"], not_before=field("release")))
        at = run.clock.now + timedelta(seconds=ahead)
        order = run.submit("w", {"release": iso(at)})
        run.go()
        assert order.state == ("processing" if ahead > 0 else "processed")
        assert Wait.objects.filter(due_at=at, fixed=True).count() == (ahead > 0)
        run.wait(max(ahead, 0))
        assert order.state == "processed"
        assert not Wait.objects.exists()

    @pytest.mark.parametrize("value", [None, 0, 0.0])
    def test_null_and_zero_are_at_once(self, declare, run, value):
        declare(call("pay", not_before=field("at")), call("ship", ["pay"], not_before=field("at")))
        order = run.submit("w", {"at": value})
        run.go()
        assert order.state == "processed"

    def test_value_of_a_result(self, declare, run):
        declare(PAY, call("ship", ["pay"], not_before=result("pay", "after")))
        run.script("bank.charge", outcomes.done(id="1", after=120))
        order = run.submit("w", {})
        assert run.jump() == pytest.approx(120)
        assert order.state == "processed"

    def test_each_kind_of_step_waits(self, declare, run):
        declare(
            Declared(name="sum", compute=lambda request: {"sum": 1}, not_before=60),
            Declared(name="review", person="fraud", after=["sum"], not_before=60, ends_within=600),
            Declared(name="goods", signal="arrived", after=["review"], not_before=60),
        )
        order = run.submit("w", {})
        run.wait(59)
        assert order.steps["sum"] == "waiting"
        run.wait(2)
        assert order.steps["sum"] == "processed"
        assert not Wait.objects.exclude(person="").exists()  # no person is asked yet
        run.wait(60)
        assert order.steps["review"] == "awaiting"
        ((since, by),) = Wait.objects.values_list("awaited_at", "ends_by")
        assert (by - since).total_seconds() == pytest.approx(600, abs=1)
        run.complete(order, "review", {})
        run.wait(59)
        assert order.steps["goods"] == "waiting"
        run.wait(2)
        run.complete(order, "goods", {})
        run.go()
        assert order.state == "processed"

    def test_waiting_costs_nothing(self, declare, run):
        declare(PAY, call("ship", ["pay"], not_before=300 * DAY))
        order = run.submit("w", {})
        run.go()
        before = Event.objects.count(), Attempt.objects.count()
        run.wait(200 * DAY)
        assert order.steps["ship"] == "waiting"
        assert (Event.objects.count(), Attempt.objects.count()) == before
        assert not Alert.objects.exists()
        assert not Incident.objects.exists()
        assert not Task.objects.filter(overdue=True).exists()
        assert Wait.objects.count() == 1

    def test_chain_of_times_is_waited_for_one_after_the_other(self, declare, run):
        declare(PAY, call("a", ["pay"], not_before=60), call("b", ["a"], not_before=60))
        order = run.submit("w", {})
        run.go()
        assert [run.jump(), run.jump(), run.jump()] == [
            pytest.approx(60, abs=1),
            pytest.approx(60, abs=1),
            0,
        ]
        assert order.state == "processed"

    def test_what_happens_beside_does_not_begin_the_count_anew(self, declare, run):
        beside = Declared(name="goods", signal="arrived")
        declare(PAY, call("ship", ["pay"], not_before=HOUR), beside, call("letter", ["goods"]))
        order = run.submit("w", {})
        run.wait(HOUR / 2)
        run.complete(order, "goods", {})
        run.go()
        assert order.steps == {
            "pay": "processed", "ship": "waiting", "goods": "processed", "letter": "processed",
        }  # fmt: skip
        run.wait(HOUR / 2)
        assert order.state == "processed"

    def test_time_of_a_submission_is_that_of_its_first_steps(self, declare, run):
        declare(
            call("pay", not_before=HOUR), Declared(name="goods", signal="arrived"), call("ship"),
            run_after=field("begins"),
        )  # fmt: skip
        begins = run.clock.now + timedelta(seconds=60)
        order = run.submit("w", {"begins": iso(begins)})
        run.wait(59)
        assert set(order.steps.values()) == {"waiting"}
        run.wait(2)
        assert order.steps == {"pay": "waiting", "goods": "awaiting", "ship": "processed"}
        run.wait(HOUR)
        assert order.steps["pay"] == "processed"


class TestCondition:
    REMINDER = call("remind", not_before=3 * DAY, when=not_(done("paid")))

    def paid(self):
        return Declared(name="paid", signal="payment", ends_within=30 * DAY)

    @pytest.mark.parametrize("pays", [True, False])
    def test_is_decided_as_the_time_comes(self, declare, run, pays):
        declare(self.paid(), self.REMINDER, call("ship", ["paid"]))
        order = run.submit("w", {})
        run.wait(2 * DAY)
        if pays:
            run.complete(order, "paid", {})
        run.wait(DAY)
        assert order.steps["remind"] == ("skipped" if pays else "processed")
        assert not Wait.objects.filter(awaited_at=None).exists()

    def test_request_is_built_as_the_time_comes(self, declare, run):
        declare(
            self.paid(),
            call("ship", not_before=DAY, request={"how": result("paid", "how", default="unpaid")}),
        )
        order = run.submit("w", {})
        run.wait(HOUR)
        run.complete(order, "paid", {"how": "by card"})
        run.wait(DAY)
        (shipped,) = run.calls("bank.charge")
        assert shipped.payload == {"how": "by card"}
        assert order.state == "processed"

    def test_step_after_one_that_is_skipped_waits_too(self, declare, run):
        declare(call("a", when=field("needed")), call("b", ["a"], not_before=60), call("c", ["b"]))
        order = run.submit("w", {"needed": False})
        run.wait(59)
        assert order.steps == {"a": "skipped", "b": "waiting", "c": "waiting"}
        run.wait(2)
        assert order.state == "processed"

    def test_task_ends_whose_only_step_turns_out_not_to_be_needed(self, declare, run):
        declare(call("pay", not_before=HOUR, when=field("needed")))
        order = run.submit("w", {"needed": False})
        run.go()
        assert order.state == "pending"
        run.wait(HOUR)
        assert (order.state, order.steps) == ("processed", {"pay": "skipped"})


class TestBadTime:
    BAD = (
        ("soon", "is not a time"),
        ("2030-01-31T12:00:00", "has no offset from UTC"),
        ("9999-12-31T23:59:00-14:00", "is not in the years 1900 to 8999"),
        (-1, "is neither a number of seconds nor a time"),
        (1e12, "is neither a number of seconds nor a time"),
        ([], "is neither a number of seconds nor a time"),
        (True, "is neither a number of seconds nor a time"),
    )

    @pytest.mark.parametrize(("value", "because"), BAD, ids=str)
    def test_of_the_input_is_refused_as_it_is_submitted(self, declare, run, value, because):
        declare(PAY, call("ship", ["pay"], not_before=field("at")))
        with pytest.raises(Refused, match=because):
            api.submit("w", reference="1", data={"at": value})
        assert not Submission.objects.exists()
        # posted by SQL, it is set aside
        Submission.objects.create(workflow="w", reference="1", data={"at": value})
        run.go()
        assert because in Submission.objects.get().reason
        assert not Task.objects.exists()

    def order(self, declare, run, value="soon", **fields):
        declare(PAY, call("ship", ["pay"], not_before=result("pay", "at"), **fields))
        run.script("bank.charge", outcomes.done(id="1", at=value))
        order = run.submit("w", {})
        run.go()
        return order

    @pytest.mark.parametrize(("value", "because"), BAD, ids=str)
    def test_of_a_result_is_an_error_once(self, declare, run, value, because):
        order = self.order(declare, run, value)
        run.wait(DAY)
        assert (order.state, order.step("ship").error_code) == ("error", "invalid_time")
        step = Step.objects.get(name="ship")
        assert because in step.error_message
        assert (step.attempt, Alert.objects.count()) == (0, 1)
        assert not Wait.objects.exists()

    def test_result_without_the_value_is_an_error(self, declare, run):
        declare(PAY, call("ship", ["pay"], not_before=result("pay", "at")))
        order = run.submit("w", {})
        run.go()
        assert order.step("ship").error_code == "invalid_time"

    def test_resubmit_by_a_person_begins_it(self, declare, run):
        order = self.order(declare, run)
        step = Step.objects.get(name="ship")
        assert resubmit(step.id, attempt=0, actor="ann", reason="now") is None
        run.go()
        assert order.state == "processed"


class TestUndo:
    def test_step_that_waits_is_cancelled_and_its_row_removed(self, declare, run):
        declare(PAY, call("ship", ["pay"], not_before=DAY))
        order = run.submit("w", {})
        run.wait(HOUR)
        ask_undo(order)
        run.wait(2 * DAY)
        assert (order.state, order.undone, order.steps["ship"]) == ("undone", ["pay"], "cancelled")
        assert not Wait.objects.exists()
        assert [call.payload for call in run.calls("bank.charge")] == [{"of": "pay"}]

    def test_first_step_that_waits_is_cancelled(self, declare, run):
        declare(call("pay", not_before=DAY))
        order = run.submit("w", {})
        run.go()
        ask_undo(order)
        run.wait(2 * DAY)
        assert (order.state, order.steps) == ("undone", {"pay": "cancelled"})
        assert not Wait.objects.exists()


class TestDeadlineOfTheTask:
    def test_is_put_off_by_the_wait_and_no_more(self, declare, run):
        declare(PAY, call("ship", ["pay"], not_before=3 * DAY), call("late", ["ship"]))
        run.script("bank.charge", *2 * [outcomes.done(id="1")], outcomes.transient(retry_after=DAY))
        run.submit("w", {})
        run.wait(3 * DAY + HOUR / 2)
        assert not mark_overdue(10, now=run.clock.now)
        run.wait(HOUR)
        assert Task.objects.get().overdue

    def test_of_a_first_step(self, declare, run):
        declare(call("ship", not_before=3 * DAY), call("late", ["ship"]))
        run.script("bank.charge", outcomes.done(id="1"), outcomes.transient(retry_after=DAY))
        run.submit("w", {})
        run.wait(3 * DAY + HOUR / 2)
        assert not Task.objects.get().overdue
        run.wait(HOUR)
        assert Task.objects.get().overdue


class TestReportedBefore:
    def test_report_of_a_step_whose_time_has_not_come_is_kept(self, declare, run):
        declare(PAY, Declared(name="goods", signal="arrived", after=["pay"], not_before=HOUR))
        order = run.submit("w", {})
        run.go()
        run.complete(order, "goods", {"n": 3})
        run.wait(HOUR - 60)
        assert order.steps["goods"] == "waiting"
        run.wait(120)
        assert order.state == "processed"
        assert order.result("goods") == {"n": 3}
        assert not Wait.objects.exists()

    def test_report_before_its_turn_is_kept_through_its_time(self, declare, run):
        declare(PAY, Declared(name="goods", signal="arrived", after=["pay"], not_before=HOUR))
        run.script("bank.charge", outcomes.transient(retry_after=60), outcomes.done(id="1"))
        order = run.submit("w", {})
        run.go()
        run.complete(order, "goods", {"n": 3})
        run.wait(2 * HOUR)
        assert order.result("goods") == {"n": 3}

    def test_report_of_a_call_is_kept_as_its_time_comes(self, declare, run):
        declare(call("pay", not_before=HOUR))
        run.script("bank.charge", outcomes.later(id="pi_1"))
        order = run.submit("w", {})
        run.go()
        run.complete(order, "pay", {"id": "early"})
        run.wait(HOUR + 10)
        assert (order.state, order.result("pay")) == ("processed", {"id": "early"})
        assert not Wait.objects.exists()


def test_otherwise_after_the_time(declare, run):
    """A template of a time may fall back on another, where a step may be skipped."""
    declare(
        call("a", refused={"closed": "pass"}),
        call("b", ["a"], not_before=first(result("a", "at"), 60), when=passed("a", "closed")),
    )
    run.script("bank.charge", outcomes.rejected("closed"), outcomes.done(id="1"))
    order = run.submit("w", {})
    run.wait(59)
    assert order.steps == {"a": "skipped", "b": "waiting"}
    run.wait(2)
    assert order.state == "processed"
