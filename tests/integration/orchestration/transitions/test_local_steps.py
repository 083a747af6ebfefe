"""Steps without an agent: a scheduler computes them in the transaction that releases them."""

import time
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.db import ProgrammingError, connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import conf, registry, scheduler
from orchestration.agents.errors import Rejected
from orchestration.agents.payload_schemas import Invalid
from orchestration.applications import task_status
from orchestration.assurance.audit import runner, snapshot
from orchestration.cluster.debounce import Debounce
from orchestration.database.prepared import statement as prepared
from orchestration.decisions.amendment import Amendment
from orchestration.declarations.workflows import own_problems
from orchestration.messaging import queues
from orchestration.messaging.messages import Reply, Request
from orchestration.models import Alert, Attempt, StatusMessage, Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.monitoring.monitors import look
from orchestration.payloads.placeholders import field, result
from orchestration.states import LOCAL
from orchestration.transitions.failures import wake
from orchestration.transitions.holds import hold, release, unpark
from orchestration.transitions.locked_task import STEPS
from orchestration.transitions.moves import RELEASED
from orchestration.transitions.resubmit import done_by_hand, resubmit
from orchestration.transitions.undo import undo
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.engine import new_task, states, step_of
from tests.support.operations import advance, drafted, running
from tests.support.operators import browser, person
from tests.support.page import page

pytestmark = pytest.mark.django_db
NO_AGENT = "local (no agent)"  # stands where pages name the agent


def add(request):
    return {"sum": sum(request["of"])}


@dataclass
class Sum:
    sum: int


def fail_typed(request) -> Sum:
    raise Rejected("no")


def call(name, *after, **request):
    return Declared(
        name=name, agent="greeter", action="greet", after=after, request=request, undo=None
    )


def local(name, *after, function=add, **request):
    return Declared(name=name, compute=function, after=after, request=request)


@pytest.fixture
def declare(monkeypatch):
    def declare(*steps, name="sums"):
        workflow = Workflow(name=name, steps=steps)
        assert own_problems(workflow) == []
        monkeypatch.setitem(registry.workflows, name, workflow)

    return declare


def task_of(**data) -> Task:
    return new_task(workflow="sums", data=data)


def turn(replies=(), look_at=("greeter", LOCAL), by="scheduler-1"):
    outcome = scheduler.run_once(by, [reply.dump() for reply in replies], look_at)
    scheduler._paused.clear()
    return outcome


def answer(task, name="call", value=5):
    """Answer a call that is out, in a turn of a scheduler."""
    step = step_of(task, name)
    assert step.process_state == "processing"
    reply = Reply(
        step=step.id, task=task.id, attempt=step.attempt, outcome="done",
        result={"id": value}, code="", message="", tries=1, started=1.0, ended=2.0, by="agent-1",
    )  # fmt: skip
    return turn([reply])


def state_of(task) -> str:
    return Task.objects.get(id=task.id).state


class TestPositions:
    def test_first_last_and_in_a_row_are_done_in_the_same_turn(self, declare):
        declare(
            local("first", of=[field("a"), 1]),
            call("call", "first", to=result("first", "sum")),
            local("next", "call", of=[result("call", "id"), 10]),
            local("last", "next", of=[result("next", "sum"), 100]),
        )
        task = task_of(a=2)
        assert states(task)["first"] == "pending"
        turn()
        assert states(task) == {
            "first": "processed", "call": "processing", "next": "waiting", "last": "waiting",
        }  # fmt: skip
        assert step_of(task, "call").request == {"to": 3}
        answer(task)
        assert step_of(task, "last").result == {"sum": 115}
        assert state_of(task) == "processed"

    def test_a_workflow_of_nothing_else_ends_in_one_turn(self, declare):
        declare(local("one", of=[field("a")]), local("two", "one", of=[result("one", "sum"), 1]))
        task = task_of(a=1)
        turn()
        assert state_of(task) == "processed"
        assert step_of(task, "two").result == {"sum": 2}

    def test_one_that_joins_others_waits_for_all_of_them(self, declare):
        declare(
            call("left"),
            call("right"),
            local("join", "left", "right", of=[result("left", "id"), result("right", "id")]),
        )
        task = task_of()
        turn()
        for value, name in enumerate(("left", "right"), start=1):
            assert states(task)["join"] == "waiting"
            answer(task, name, value)
        assert step_of(task, "join").result == {"sum": 3}
        assert state_of(task) == "processed"

    def test_its_history_says_who_computed_it_and_when(self, declare):
        declare(local("one", of=[1]))
        task = task_of()
        turn(by="scheduler-7")
        attempt = Attempt.objects.get(step__task=task)
        assert (attempt.number, attempt.outcome, attempt.scheduler) == (1, "done", "scheduler-7")
        assert attempt.agent == "scheduler-7"
        assert attempt.dispatched_at <= attempt.ended_at
        step = step_of(task, "one")
        assert (step.locked_by, step.complete_by, step.attempt) == (None, None, 1)

    def test_more_in_a_row_than_one_turn_takes_are_done_by_the_next(self, declare, monkeypatch):
        monkeypatch.setattr("orchestration.transitions.local_steps.ROUNDS", 2)
        declare(
            local("a", of=[1]), local("b", "a", of=[result("a", "sum")]),
            local("c", "b", of=[result("b", "sum")]),
        )  # fmt: skip
        task = task_of()
        more = turn().more
        assert (states(task)["c"], more) == ("pending", {LOCAL})
        turn(look_at=more)
        assert state_of(task) == "processed"

    def test_an_application_hears_of_it(self, declare):
        declare(local("one", of=[1]))
        new_task(workflow="sums", data={}, reply_to="shop")
        turn()
        assert StatusMessage.objects.filter(kind="completed").count() == 1

    def test_owner_gets_messages_in_order_and_the_end_last(self, monkeypatch):
        steps = (local("one", of=[1]), local("two", "one", of=[result("one", "sum")]))
        owned = Workflow(name="sums", steps=steps, owner_application="shop")
        monkeypatch.setitem(registry.workflows, "sums", owned)
        task = task_of()
        turn()
        messages = StatusMessage.objects.filter(task=task).order_by("number")
        numbers = list(messages.values_list("number", flat=True))
        assert numbers == list(range(1, len(numbers) + 1))
        assert messages.last().kind == "completed"
        assert messages.last().progress["state"] == "processed"


def sent() -> Counter:
    """Return how often each attempt is in the agent's inbox."""
    raw = queues.connection().lrange(queues.inbox("greeter"), 0, -1)
    requests = [Request.parse(item) for item in raw if item != queues.LOOK]
    return Counter((request.name, request.attempt) for request in requests)


class TestBesideCalls:
    """One reply makes a call and a computed step ready: the turn has one picture of their task."""

    def test_owner_sees_the_call_that_a_reply_makes_ready_with_its_request(self, monkeypatch):
        """Though it is written only as it is claimed, behind the message."""
        steps = (call("call"), call("next", "call", to=result("call", "id")))
        owned = Workflow(name="sums", steps=steps, owner_application="shop")
        monkeypatch.setitem(registry.workflows, "sums", owned)
        task = task_of()
        turn()
        answer(task)
        last = StatusMessage.objects.filter(task=task).latest("number")
        step = step_of(task, "next")
        assert step.process_state == "processing"
        (seen,) = [each for each in last.progress["steps"] if each["name"] == "next"]
        assert (seen["state"], seen["request"]) == ("pending", step.request)
        assert task_status.snapshots([task.id]) == []  # nothing that it has not seen

    def test_call_beside_a_computed_step_is_sent_once(self, declare):
        declare(
            call("call"), call("beside", "call"), local("sum", "call", of=[result("call", "id")])
        )
        task = task_of()
        turn()
        answer(task)
        assert states(task) == {
            "call": "processed", "beside": "processing", "sum": "processed",
        }  # fmt: skip
        assert sent() == {("call", 1): 1, ("beside", 1): 1}

    def test_call_behind_a_computed_step_is_sent_at_once(self, declare):
        declare(
            call("call"),
            local("sum", "call", of=[result("call", "id")]),
            call("behind", "sum", to=result("sum", "sum")),
        )
        task = task_of()
        turn()
        with CaptureQueriesContext(connection) as seen:
            answer(task)
        assert step_of(task, "behind").process_state == "processing"
        assert sent() == {("call", 1): 1, ("behind", 1): 1}
        # only the computed one is written as pending
        released = f"EXECUTE {prepared(RELEASED.statement).name}"
        assert len([query for query in seen if released in query["sql"]]) == 1

    def test_call_beside_a_computed_step_that_is_refused_is_sent_once(self, declare):
        declare(call("call"), call("beside", "call"), local("sum", "call", of=[1], function=fail))
        task = task_of()
        turn()
        answer(task)
        assert states(task) == {
            "call": "processed", "beside": "processing", "sum": "error",
        }  # fmt: skip
        assert sent() == {("call", 1): 1, ("beside", 1): 1}

    def test_call_beside_one_that_cannot_be_recorded_is_sent_once(self, declare):
        declare(
            call("call"), call("beside", "call"), local("sum", "call", of=[result("call", "id")])
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE orchestration_step ADD CONSTRAINT poison CHECK (result <> '{\"sum\": 5}')"
            )
        task = task_of()
        turn()
        answer(task)
        assert states(task) == {
            "call": "processed", "beside": "processing", "sum": "pending",
        }  # fmt: skip
        assert sent() == {("call", 1): 1, ("beside", 1): 1}


class TestTransaction:
    def test_it_is_recorded_with_the_reply_that_released_it_or_not_at_all(
        self, declare, monkeypatch
    ):
        declare(call("call"), local("next", "call", of=[result("call", "id")]))
        task = task_of()
        turn()

        def fail(*_):
            raise RuntimeError("the claim fails")

        monkeypatch.setattr(scheduler, "claim", fail)
        monkeypatch.setattr(scheduler, "_record_in_parts", fail)
        with pytest.raises(RuntimeError):
            answer(task)
        assert states(task) == {"call": "processing", "next": "waiting"}
        assert not Attempt.objects.exists()

    def test_a_batch_costs_the_same_number_of_queries(self, declare):
        declare(local("one", of=[1]), local("two", "one", of=[result("one", "sum")]))
        counts = []
        for size in (1, 30):
            for _ in range(size):
                task_of()
            with CaptureQueriesContext(connection) as seen:
                turn(look_at=[LOCAL])
            counts.append(len(seen))
        assert counts[0] == counts[1]
        assert set(Task.objects.values_list("state", flat=True)) == {"processed"}

    def test_turn_with_agents_only_costs_no_extra_query(self):
        new_task()
        with CaptureQueriesContext(connection) as seen:
            turn(look_at=["greeter"])
        statements = [query["sql"] for query in seen]
        assert not [text for text in statements if "s.agent = ''" in text]
        assert not [text for text in statements if prepared(STEPS).name in text]

    def test_local_steps_are_queried_only_where_some_are_declared(self, declare, monkeypatch):
        monkeypatch.setattr(registry, "workflows", {})
        assert LOCAL not in scheduler.all_agents()
        declare(local("one", of=[1]))
        assert LOCAL in scheduler.all_agents()


def refuse(_):
    raise Rejected("too_much", "more than one may order")


def fail(_):
    raise ZeroDivisionError("by zero")


def ask_the_database(_):
    return {"tasks": Task.objects.count()}


class TestFailures:
    @pytest.mark.parametrize(
        ("function", "code", "message"),
        [
            (refuse, "too_much", "more than one may order"),
            (fail, "compute_failed", "ZeroDivisionError: by zero"),
            (
                ask_the_database,
                "compute_failed",
                "RuntimeError: a computed step cannot use the database",
            ),
        ],
    )
    def test_it_is_an_error_with_an_alert_and_the_others_go_on(
        self, declare, function, code, message
    ):
        declare(local("one", of=[1], a=field("a"), function=lambda payload: by(payload, function)))
        first, bad, last = task_of(a=1), task_of(a=0), task_of(a=1)
        turn()
        assert [state_of(task) for task in (first, bad, last)] == [
            "processed", "error", "processed",
        ]  # fmt: skip
        step = step_of(bad, "one")
        assert (step.error_code, step.error_message) == (code, message)
        assert (step.outcome, step.in_doubt, step.attempt) == ("rejected", False, 1)
        assert step.alert.closed_at is None
        assert Attempt.objects.get(step=step).error_code == code

    def test_the_reply_that_released_it_is_recorded_all_the_same(self, declare):
        declare(call("call"), local("next", "call", of=[1], function=fail))
        task = task_of()
        turn()
        answer(task)
        assert states(task) == {"call": "processed", "next": "error"}

    def test_a_deploy_mends_it_and_a_resubmit_runs_it_anew(self, declare):
        declare(local("one", of=[field("a")], function=fail), local("two", "one", of=[1]))
        task = task_of(a=3)
        turn()
        step = step_of(task, "one")
        assert resubmit(step.id, attempt=1, actor="ann", reason="again") is None
        turn()
        assert step_of(task, "one").process_state == "error"  # the same code, the same error
        declare(local("one", of=[field("a")]), local("two", "one", of=[1]))
        assert resubmit(step.id, attempt=2, actor="ann", reason="deployed") is None
        assert states(task)["one"] == "pending"
        turn()
        assert step_of(task, "one").result == {"sum": 3}
        assert state_of(task) == "processed"
        assert not Alert.objects.filter(closed_at=None).exists()

    def test_its_input_may_be_changed(self, declare):
        declare(local("one", of=[field("a"), 1]))
        task = task_of(a="text")
        turn()
        step = step_of(task, "one")
        changed = Amendment(request={"of": [2, 1]})
        assert not resubmit(step.id, attempt=1, actor="ann", reason="2", amendment=changed)
        turn()
        assert step_of(task, "one").result == {"sum": 3}

    def test_it_may_be_done_by_hand(self, declare):
        declare(local("one", of=[1], function=fail), local("two", "one", of=[result("one", "sum")]))
        task = task_of()
        turn()
        step = step_of(task, "one")
        done_by_hand(step.id, attempt=1, actor="ann", reason="reckoned", result={"sum": 8})
        assert states(task) == {"one": "processed", "two": "pending"}
        turn()
        assert step_of(task, "two").result == {"sum": 8}

    def test_what_is_entered_by_hand_has_the_type_of_its_function(self, declare):
        declare(local("one", of=[1], function=fail_typed))
        task = task_of()
        turn()
        step = step_of(task, "one")
        how = {"attempt": 1, "actor": "ann", "reason": "reckoned"}
        with pytest.raises(Invalid, match="'sum' is missing"):
            done_by_hand(step.id, result={"total": 8}, **how)
        done_by_hand(step.id, result={"sum": 8}, **how)
        assert states(step.task) == {"one": "processed"}

    def test_one_that_cannot_be_recorded_waits_and_the_others_go_on(self, declare):
        declare(local("one", of=[field("a")]))
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE orchestration_step ADD CONSTRAINT poison CHECK (result <> '{\"sum\": 2}')"
            )
        first, bad, last = task_of(a=1), task_of(a=2), task_of(a=1)
        turn()
        assert [state_of(task) for task in (first, bad, last)] == [
            "processed", "pending", "processed",
        ]  # fmt: skip
        step = step_of(bad, "one")
        assert (step.process_state, step.error_code) == ("pending", "not_recorded")
        assert step.run_after is not None


class TestAFailureOfAllComputing:
    def test_replies_are_recorded_and_calls_claimed_all_the_same(self, declare, caplog):
        declare(call("call"), local("next", "call", of=[1]), call("last", "call"))
        task = task_of()
        turn()

        def broken(execute, sql, parameters, many, context):
            if "s.agent = ''" in sql:
                raise ProgrammingError("it is broken")
            return execute(sql, parameters, many, context)

        with connection.execute_wrapper(broken):
            answer(task)
        assert states(task) == {"call": "processed", "next": "pending", "last": "processing"}
        assert "no step is computed now" in caplog.text
        turn()
        assert states(task)["next"] == "processed"


def by(payload, function):
    return add(payload) if payload["a"] else function(payload)


class TestMissingFunction:
    def test_it_waits_with_an_alert_until_some_code_has_it(self, declare):
        declare(local("one", of=[1]))
        task = task_of()
        declare(local("other", of=[1]))
        turn()
        step = step_of(task, "one")
        assert (step.process_state, step.error_code) == ("pending", "no_such_function")
        assert (step.attempt, step.failure_count) == (0, 0)
        assert "uncomputed/sums/one" in open_alerts()
        declare(local("one", of=[1]))
        turn()
        assert states(task)["one"] == "pending"  # its time has not come
        Step.objects.filter(id=step.id).update(run_after=DatabaseNow())
        assert wake(10) == 1
        turn()
        assert state_of(task) == "processed"
        assert open_alerts() == ""

    def test_it_keeps_no_other_waiting(self, declare, monkeypatch):
        monkeypatch.setattr(conf, "BATCH_SIZE", 2)
        declare(local("gone", of=[1]), name="old")
        for _ in range(5):
            new_task(workflow="old", data={})
        monkeypatch.delitem(registry.workflows, "old")
        declare(local("one", of=[1]))
        task = task_of()
        turn()
        assert state_of(task) == "processed"

    def test_one_that_no_scheduler_comes_to_is_an_alert(self, declare):
        declare(local("one", of=[1]))
        task = task_of()
        assert "uncomputed" not in open_alerts()
        Step.objects.filter(task=task).update(pending_since=DatabaseNow() - timedelta(hours=1))
        assert "uncomputed/sums/one" in open_alerts()


def open_alerts() -> str:
    look(Debounce(), patience=3600)
    alerts = Alert.objects.filter(closed_at=None, fingerprint__contains="computed")
    return " ".join(alerts.values_list("fingerprint", flat=True))


class TestPeople:
    def test_one_of_a_held_task_waits_until_it_is_released(self, declare):
        declare(call("call"), local("next", "call", of=[1]))
        task = task_of()
        turn()
        hold_id = hold(task=task.id, actor="ann", reason="wait")
        answer(task)
        assert step_of(task, "next").held_by == hold_id
        release(hold_id.id, actor="ann", reason="go on")
        unpark()
        turn()
        assert state_of(task) == "processed"

    def test_global_hold_stops_local_steps(self, declare):
        declare(local("one", of=[1]))
        task = task_of()
        hold_id = hold(actor="ann", reason="stop")
        turn()
        assert states(task) == {"one": "pending"}
        release(hold_id.id, actor="ann", reason="go on")
        turn()
        assert state_of(task) == "processed"

    def test_a_held_step_keeps_no_other_waiting(self, declare, monkeypatch):
        monkeypatch.setattr(conf, "BATCH_SIZE", 2)
        declare(local("one", of=[1]), name="held")
        tasks = [new_task(workflow="held", data={}) for _ in range(3)]
        hold(workflow="held", step="one", actor="ann", reason="wrong")
        declare(local("one", of=[1]))
        task = task_of()
        turn()
        assert state_of(task) == "processed"
        assert Step.objects.filter(task__in=tasks, held_by__isnull=False).count() == 3

    def test_undo_reverts_calls_and_keeps_local_results(self, declare):
        undone = Declared(
            name="call", agent="greeter", action="greet", after=["first"],
            undo="take_back", undo_request={"sum": result("first", "sum")},
        )  # fmt: skip
        declare(local("first", of=[4]), undone, call("wait", "call"), local("last", "wait", of=[1]))
        task = task_of()
        turn()
        answer(task)
        undo(task.id, actor="ann", reason="not wanted")
        (taken_back,) = Step.objects.filter(task=task, direction="undo")
        assert taken_back.name == "call"
        assert states_of_does(task)["last"] == "cancelled"


def states_of_does(task):
    does = Step.objects.filter(task=task, direction="do")
    return dict(does.values_list("name", "process_state"))


def test_task_page_marks_a_local_step(declare):
    task = new_task(workflow="invite", data={"name": "ada"})
    ann = browser(person("ann", "operate", "resubmit"))
    address, step = reverse("ops:task", args=[task.id]), step_of(task, "address")
    assert NO_AGENT in page(ann.get(address)).only(f"#step-{step.id}").text
    turn()
    assert "Dear Ada" in page(ann.get(address)).only(f"#step-{step.id}").text


def test_audit_has_no_findings(declare):
    declare(local("one", of=[field("a")]), call("call", "one"), local("two", "call", of=[1]))
    done, bad, waits = task_of(a=1), task_of(a="?"), task_of(a=2)
    turn()
    answer(done)
    answer(waits)
    late = task_of(a=3)
    assert [state_of(task) for task in (done, bad, waits, late)] == [
        "processed", "error", "processed", "pending",
    ]  # fmt: skip
    snapshot.fill(snapshot.prepare())
    assert runner.find(()) == []
    step = step_of(bad, "one")
    resubmit(step.id, attempt=1, actor="ann", reason="again", request={"of": [1]})
    turn()
    snapshot.fill(snapshot.prepare())
    assert runner.find(()) == []


def test_those_that_failed_are_resubmitted_in_bulk(declare):
    declare(local("one", of=[field("a")], function=fail))
    tasks = [task_of(a=number) for number in range(3)]
    turn()
    operation = drafted(tasks)
    ann = browser(person("ann", "operate", "resubmit", "bulk"))
    shown = page(ann.get(reverse("ops:operation", args=[operation.id])))
    assert [NO_AGENT, "3"] in shown.rows()
    declare(local("one", of=[field("a")]))
    operation = running(tasks)
    advance(operation)
    turn()
    advance(operation)
    assert {state_of(task) for task in tasks} == {"processed"}
    assert Alert.objects.get().closed_at is not None


def test_pages_and_metrics_accept_steps_without_an_agent(declare):
    declare(local("one", of=[field("a")], function=fail), local("two", "one", of=[1]))
    task = task_of(a=1)
    ann = browser(person("ann", "operate", "resubmit", "hold", "correct"))
    addresses = [
        "/ops/", "/ops/tasks/?q=step:one", "/ops/workflows/", "/ops/agents/", "/ops/system/",
        "/ops/incidents/", reverse("ops:task", args=[task.id]), "/metrics",
    ]  # fmt: skip
    for _ in range(2):  # while it waits, and once it has failed
        for address in addresses:
            assert ann.get(address).status_code in {200, 403}, address
        turn()
    step = step_of(task, "one")
    incident = ann.get(f"/ops/incidents/{step.incident_id}/")
    assert NO_AGENT in page(incident).text
    change = ann.get(f"/ops/steps/{step.id}/change/")
    assert NO_AGENT in page(change).section("h-input").text


def test_turn_computes_until_its_budget_is_over(declare, monkeypatch):
    monkeypatch.setattr(conf, "COMPUTE_BUDGET_S", 0.25)

    def slow(_request):
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            pass
        return {}

    declare(local("add", function=slow))
    tasks = [task_of() for _ in range(12)]
    outcome = turn()
    done = sum(states(task)["add"] == "processed" for task in tasks)
    assert 1 <= done < 12
    assert LOCAL in outcome.more
    while LOCAL in turn().more:
        pass
    assert {states(task)["add"] for task in tasks} == {"processed"}
