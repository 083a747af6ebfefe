"""Steps that end later: accepted by a service, or awaited from a person or a signal."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from orchestration import api, registry, scheduler, task_requests
from orchestration.database import clock
from orchestration.messaging.messages import Reply
from orchestration.models import (
    Alert,
    Attempt,
    Event,
    Gate,
    Incident,
    StateStore,
    Submission,
    TaskRequest,
    Wait,
)
from orchestration.payloads.placeholders import field, key, passed, result
from orchestration.testing import outcomes
from orchestration.transitions import looks, waits
from orchestration.transitions.holds import hold
from orchestration.transitions.lateness import end_waits
from orchestration.transitions.locked_task import lock
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.bank import Bank

pytestmark = pytest.mark.django_db
DAY = 86_400.0


class AskedBank(Bank):
    name = "asked"

    async def ask(self, call):
        """Say what became of a charge."""
        return await self.get(call, f"/charges/{call.key}")


def pay(agent="bank", **fields):
    undo = {"undo": "refund", "undo_request": {"key": key("pay")}}
    return Declared(
        name="pay",
        agent=agent,
        action="charge",
        request={"cents": field("cents")},
        **{**undo, **fields},
    )


def ship(**fields):
    return Declared(
        name="ship", agent="bank", action="charge", after=["pay"], undo=None,
        request={"paid": result("pay", "id")}, **fields,
    )  # fmt: skip


REVIEW = Declared(
    name="review", person="fraud", request={"cents": field("cents")}, ends_within=3600.0, late="pass",
    returns={"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
)  # fmt: skip


@pytest.fixture
def declare(monkeypatch):
    for agent in (Bank, AskedBank):
        monkeypatch.setitem(registry.agents, agent.name, agent)

    def add(*steps, name="w"):
        monkeypatch.setitem(
            registry.workflows, name, Workflow(name=name, steps=list(steps), time_allowed=1e6)
        )

    return add


@pytest.fixture
def run(declare, run):
    """A run that knows the banks."""
    assert "bank" in registry.agents
    return run


def complete(task, step, *, request=None, **fields):
    request = request or uuid4()
    api.complete(task.workflow, task.reference, step, actor="the bank", id=request, **fields)
    return request


def ask_undo(task):
    api.request_undo(task.workflow, task.reference, actor="ann", reason="no", id=uuid4())


def refusal_of(request):
    return TaskRequest.objects.get(request=request).refusal


class TestAccepted:
    @pytest.fixture
    def order(self, declare, run):
        declare(pay(ends_within=7 * DAY), ship())
        run.script(
            "bank.charge",
            outcomes.later({"url": "https://bank/3ds"}, id="pi_1"),
            outcomes.done(id="s1"),
        )
        order = run.submit("w", {"cents": 5})
        run.go()
        return order

    def test_three_days_leave_no_trace(self, run, order):
        run.wait(3 * DAY)
        assert order.steps == {"pay": "awaiting", "ship": "waiting"}
        assert (order.state, Attempt.objects.count()) == ("processing", 1)
        assert not any(model.objects.exists() for model in (Event, Incident, Alert))
        gate = Gate.objects.get(agent="bank")
        assert gate.state == "closed"
        record = StateStore.objects.get(step="pay")
        assert (record.process_state, record.complete_by) == (
            "Processing",
            Wait.objects.get().ends_by,
        )

    def test_report_ends_it_once(self, run, order):
        complete(order, "pay", result={"id": "ch_1"})
        twice = complete(order, "pay", result={"id": "ch_1"})
        other = complete(order, "pay", result={"id": "ch_2"})
        run.go()
        assert order.state == "processed"
        assert order.calls()[-1].payload == {"paid": "ch_1"}
        assert (refusal_of(twice), refusal_of(other)) == ("", "REPORTED")
        assert not Wait.objects.exists()
        assert Event.objects.get(kind="reported").actor == "the bank"

    def test_refusal_is_what_the_policy_says(self, run, order):
        complete(order, "pay", refused="declined", message="no funds")
        run.go()
        assert order.steps["pay"] == "error"
        assert (order.step("pay").error_code, order.step("pay").in_doubt) == ("declined", False)

    def test_undo_takes_back_what_was_accepted(self, run, order):
        ask_undo(order)
        run.go()
        assert (order.state, order.undone) == ("undone", ["pay"])
        assert order.steps == {"pay": "cancelled", "ship": "cancelled"}
        assert not Wait.objects.exists()
        late = complete(order, "pay", result={"id": "ch_1"})
        run.go()
        assert refusal_of(late) == "REPORTED"

    def test_what_is_late_is_in_doubt_and_for_a_person(self, run, order):
        run.wait(7 * DAY + 1)
        step = order.step("pay")
        assert (step.state.value, step.error_code, step.in_doubt) == ("error", "late", True)
        assert not Wait.objects.exists()
        ask_undo(order)
        run.go()
        assert (order.state, order.undone) == ("undone", ["pay"])


class TestEarly:
    def test_report_before_the_step_awaits_it_is_kept(self, declare, run):
        declare(pay(), ship())
        run.script("bank.charge", outcomes.later(), outcomes.done(id="s1"))
        order = run.submit("w", {"cents": 5})
        first = complete(order, "pay", result={"id": "ch_1"})
        second = complete(order, "pay", result={"id": "ch_2"})
        run.go()
        assert order.state == "processed"
        assert order.calls()[-1].payload == {"paid": "ch_1"}
        assert (refusal_of(first), refusal_of(second)) == ("", "")

    @pytest.mark.parametrize("later", ["report", "look", "end"])
    def test_report_that_was_kept_comes_before_all_later_ones(self, declare, run, later):
        """A scheduler applies it some time after the step awaits it, and others may be faster."""
        declare(pay("asked", ends_within=60.0))
        run.script("asked.charge", outcomes.later(id="pi_1", look=30))
        order = run.submit("w", {"cents": 5})
        run.go()
        stored = Wait.objects.get()
        step = lock([stored.task_id])[stored.task_id].steps[stored.step_id]
        declined = waits.Report(
            id="1", actor="bank", outcome="rejected", code="declined", of="pi_1"
        )
        waits.keep([(step, declined)])
        if later == "report":
            complete(order, "pay", result={"id": "ch_1"})
            task_requests.take(1)
        elif later == "look":
            Wait.objects.update(look_at=run.clock.now, looks=0)
            ((asked,),) = looks.look(["asked"], 1).values()
            paid = Reply(
                step=step.id, task=stored.task_id, attempt=step.attempt, outcome="done",
                result={"id": "ch_1"}, code="", message="", tries=1, started=0.0, ended=0.0, by="agent",
                look=asked.look,
            )  # fmt: skip
            scheduler.run_once("scheduler", [paid.dump()], scheduler.all_agents())
        else:
            now = run.clock.now + timedelta(seconds=61)
            Wait.objects.update(due_at=run.clock.now, asked_last=True)
            end_waits([stored.task_id], by="supervisor", now=now)
        run.go()
        assert (order.steps["pay"], order.step("pay").error_code) == ("error", "declined")
        assert not Wait.objects.exists()

    def test_refusal_before_a_signal_is_awaited(self, declare, run):
        goods = Declared(name="goods", signal="arrived", refused={"lost": "pass"})
        after = Declared(
            name="after", signal="other", after=["goods"], when=passed("goods", "lost")
        )
        declare(goods, after)
        order = run.submit("w")
        complete(order, "arrived", refused="lost")
        complete(order, "other", result={"x": 1})
        run.go()
        assert order.steps == {"goods": "skipped", "after": "processed"}
        assert order.result("after") == {"x": 1}

    def test_report_of_a_step_that_answered_at_once_is_refused_unless_it_is_the_same(
        self, declare, run
    ):
        declare(pay())
        run.script("bank.charge", outcomes.done(id="ch_1"))
        order = run.submit("w", {"cents": 5})
        run.go()
        same, other = (
            complete(order, "pay", result={"id": "ch_1"}),
            complete(order, "pay", refused="no"),
        )
        unknown = complete(order, "pya", result={"id": "ch_1"})
        run.go()
        assert [refusal_of(each) for each in (same, other, unknown)] == [
            "",
            "REPORTED",
            "NO_SUCH_STEP",
        ]

    def test_report_of_an_earlier_request_is_not_taken_for_this(self, declare, run):
        declare(pay())
        run.script("bank.charge", outcomes.later(id="pi_1"), outcomes.later(id="pi_2"))
        order = run.submit("w", {"cents": 5})
        run.go()
        complete(order, "pay", refused="declined", of="pi_1")
        run.go()
        step = order.step("pay")
        api.request_resubmit("w", order.reference, "pay", attempt=step.attempt, actor="ann",
                             reason="again", id=uuid4())  # fmt: skip
        early = complete(order, "pay", refused="declined", of="pi_1")
        run.go()
        assert order.steps == {"pay": "awaiting"}
        again = complete(order, "pay", refused="declined", of="pi_1")
        run.go()
        assert (refusal_of(early), refusal_of(again)) == ("", "OTHER_ATTEMPT")
        complete(order, "pay", result={"id": "ch_2"}, of="pi_2")
        run.go()
        assert order.state == "processed"


class TestPerson:
    def test_decision_ends_it(self, declare, run):
        declare(
            REVIEW,
            Declared(
                name="go", compute=dict, after=["review"], when=result("review", "ok", default=True)
            ),
        )
        order = run.submit("w", {"cents": 5})
        run.go()
        assert order.steps == {"review": "awaiting", "go": "waiting"}
        assert order.step("review").request == {"cents": 5}
        wrong = complete(order, "review", result={"okay": True})
        run.go()
        assert refusal_of(wrong) == "INVALID"
        complete(order, "review", result={"ok": False})
        run.go()
        assert order.steps == {"review": "processed", "go": "skipped"}

    @pytest.mark.parametrize(
        "posted",
        [
            {"outcome": "unknown"},
            {"outcome": "retry"},
            {"outcome": None},
            {"outcome": "done", "result": [1]},
            {"outcome": "done", "result": None},
            {"outcome": "rejected", "code": 7},
            {"outcome": "done", "id": "another"},
            {"outcome": "done", "soon": True},
            [],
        ],
    )
    def test_report_that_was_posted_by_sql_and_is_none_is_refused(self, declare, run, posted):
        declare(Declared(name="waits", person="x"))
        order = run.submit("w")
        run.go()
        request = complete(order, "waits")
        TaskRequest.objects.filter(request=request).update(amendment=posted)
        run.go()
        assert refusal_of(request) == "INVALID"
        assert order.steps == {"waits": "awaiting"}

    def test_default_is_to_go_on(self, declare, run):
        declare(
            REVIEW,
            Declared(name="go", compute=dict, after=["review"], when=passed("review", "late")),
        )
        order = run.submit("w", {"cents": 5})
        run.wait(3599)
        assert order.steps["review"] == "awaiting"
        run.wait(2)
        assert order.steps == {"review": "skipped", "go": "processed"}
        assert not Alert.objects.exists()

    def test_undo_cancels_it(self, declare, run):
        declare(REVIEW)
        order = run.submit("w", {"cents": 5})
        run.go()
        ask_undo(order)
        run.go()
        assert (order.state, order.steps) == ("undone", {"review": "cancelled"})
        assert not Wait.objects.exists()

    @pytest.mark.parametrize(("late", "state"), [("undo", "undone"), ("error", "error")])
    def test_late_as_declared(self, declare, run, late, state):
        paid = pay()
        waits = Declared(
            name="waits", person="fraud", after=["pay"], ends_within=field("within"), late=late
        )
        declare(paid, waits)
        run.script("bank.charge", outcomes.done(id="ch_1"))
        order = run.submit("w", {"cents": 5, "within": 60})
        run.wait(61)
        assert order.state == state
        assert order.undone == (["pay"] if late == "undo" else [])

    def test_end_is_a_time_of_the_input(self, declare, run):
        declare(Declared(name="waits", person="x", ends_within=field("by"), late="pass"))
        by = (run.clock.now.replace(microsecond=0)).isoformat()
        order = run.submit("w", {"by": by})
        run.wait(5)
        assert order.state == "processed"

    @pytest.mark.parametrize(
        ("by", "because"),
        [
            ("soon", "is not a time"),
            ("2030-01-31T12:00:00", "has no offset from UTC"),
            ("0001-01-01T00:00:00+14:00", "is not in the years 1900 to 8999"),
            ("9999-12-31T23:59:00-14:00", "is not in the years 1900 to 8999"),
            (0, "is neither a number of seconds nor a time"),
        ],
    )
    def test_end_that_cannot_be_is_refused(self, declare, run, by, because):
        declare(Declared(name="waits", person="x", ends_within=field("by"), late="pass"))
        order = run.submit("w", {"by": by})
        run.go()
        assert order.state == "refused"
        assert because in Submission.objects.get().reason

    def test_reminders_come_before_the_end(self, declare, run, monkeypatch):
        heard = []
        monkeypatch.setitem(registry.receivers, "hotel", heard.extend)
        declare(Declared(name="waits", person="x", ends_within=100.0, remind=[10, 30], late="pass"))
        run.submit("w", reply_to="hotel")
        run.wait(20)
        assert [status.kind.value for status in heard] == ["received", "reminder"]
        run.wait(100)
        assert [status.kind.value for status in heard[1:]] == ["reminder", "reminder", "completed"]

    def test_resubmit_awaits_it_again(self, declare, run):
        declare(Declared(name="waits", person="x", ends_within=60.0))
        order = run.submit("w")
        run.wait(61)
        step = order.step("waits")
        assert step.error_code == "late"
        api.request_resubmit("w", order.reference, "waits", attempt=step.attempt, actor="ann",
                             reason="once more", id=uuid4())  # fmt: skip
        run.wait(30)
        assert order.steps == {"waits": "awaiting"}
        complete(order, "waits", result={"ok": 1})
        run.go()
        assert order.state == "processed"
        assert not Alert.objects.filter(closed_at=None).exists()


class TestLook:
    @pytest.fixture
    def order(self, declare, run):
        declare(pay("asked", ends_within=600.0), ship())
        run.script("bank.charge", outcomes.done(id="s1"))
        return run.submit("w", {"cents": 5})

    def test_service_is_asked_until_it_says(self, run, order):
        run.script("asked.charge", outcomes.later({"n": 1}, look=60))
        run.wait(200)
        asked = run.calls("asked.charge", asked=True)
        assert [call.at for call in asked] == [60.0, 120.0, 180.0]
        assert {call.key for call in asked} == {order.calls()[0].key}
        assert (Attempt.objects.count(), Event.objects.count()) == (1, 0)
        assert Wait.objects.get().looks == 3
        assert order.steps["pay"] == "awaiting"

    @pytest.mark.parametrize(
        ("scripted", "state"),
        [(outcomes.done(id="ch_1"), "processed"), (outcomes.rejected("declined"), "error")],
    )
    def test_answer_to_a_look_ends_it(self, run, order, scripted, state, monkeypatch):
        run.script("asked.charge", outcomes.later(look=60))
        run.go()
        answers = {"asked": [outcomes.later({"n": 2}), scripted]}
        run.answer("asked.charge", *answers["asked"])
        run.wait(130)
        assert order.steps["pay"] == state
        assert order.step("pay").error_code == ("" if state == "processed" else "declined")
        assert Attempt.objects.filter(step__name="pay").count() == 1

    def test_failed_looks_are_repeated_and_say_nothing_of_the_service(self, run, order):
        run.script("asked.charge", outcomes.later(look=60))
        run.go()
        run.answer(
            "asked.charge", outcomes.transient("down"), outcomes.silent(), outcomes.done(id="ch_1")
        )
        run.wait(200)
        assert order.state == "processed"
        assert not Incident.objects.exists()

    def test_service_is_asked_once_more_as_the_time_is_over(self, run, order):
        run.script("asked.charge", outcomes.later())
        run.wait(599)
        assert not run.calls("asked.charge", asked=True)
        run.answer("asked.charge", outcomes.done(id="ch_1"))
        run.wait(2)
        assert order.state == "processed"

    def test_what_is_late_after_the_last_question_is_an_error(self, run, order):
        run.script("asked.charge", outcomes.later(look=500))
        run.wait(700)
        assert (order.steps["pay"], order.step("pay").error_code) == ("error", "late")
        assert [call.at for call in run.calls("asked.charge", asked=True)] == [500.0, 600.0]

    def test_report_beside_a_look_counts_once(self, run, order):
        run.script("asked.charge", outcomes.later(look=60))
        run.go()
        run.answer("asked.charge", outcomes.late({"id": "ch_1"}, by=5.0))
        run.wait(61)
        complete(order, "pay", result={"id": "ch_2"})
        run.wait(60)
        assert order.result("pay") == {"id": "ch_2"}
        assert order.state == "processed"

    def test_looks_of_many_are_paced(self, declare, run):
        declare(pay("asked"))
        run.policy("asked", window=30)
        run.script("asked.charge", outcomes.later(look=60))
        for _ in range(20):
            run.submit("w", {"cents": 5})
        run.go()
        Wait.objects.update(look_at=run.clock.now)
        assert len(looks.look(["asked"], 20)["asked"]) == 3
        assert looks.look(["asked"], 20) == {}
        Wait.objects.update(asked_at=None)
        assert len(looks.look(["asked"], 20)["asked"]) == 3

    def test_no_service_is_asked_while_it_is_held_or_its_breaker_is_open(self, run, order):
        run.script("asked.charge", outcomes.later(look=60))
        run.go()
        Wait.objects.update(look_at=run.clock.now)
        Gate.objects.filter(agent="asked").update(
            state="open", opened_at=run.clock.now, probe_at=run.clock.now
        )
        assert looks.look(["asked"], 20) == {}
        Gate.objects.filter(agent="asked").update(state="closed", opened_at=None, probe_at=None)
        hold(actor="ann", reason="down", agent="asked")
        assert looks.look(["asked"], 20) == {}


@pytest.mark.parametrize("off", [-3600.0, 3600.0])
def test_durations_count_by_the_clock_as_it_is_where_it_was_set_since_it_was_measured(
    declare, run, monkeypatch, off
):
    declare(
        replace(REVIEW, remind=[60.0]),
        Declared(name="note", compute=dict, not_before=90.0),
        Declared(name="dated", person="fraud", ends_within=field("until")),
    )
    until = clock.database_now() + timedelta(days=1)
    there, at = clock._measured
    monkeypatch.setattr(clock, "_measured", (there + off, at))
    api.submit("w", reference="1", data={"cents": 1, "until": until.isoformat()})
    run.go()
    waits = {wait.step.name: wait for wait in Wait.objects.select_related("step")}
    now = waits["review"].awaited_at

    def seconds(moment):
        return pytest.approx((moment - now).total_seconds(), abs=0.01)

    assert seconds(waits["review"].ends_by) == 3600.0
    assert seconds(waits["review"].due_at) == 60.0
    assert seconds(waits["note"].due_at) == 90.0
    assert (waits["dated"].ends_by, waits["dated"].due_at) == (until, until)
