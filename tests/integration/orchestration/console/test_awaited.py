"""Steps whose results come later: on the page of their task, and how a person records one."""

import json
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from orchestration import api, registry
from orchestration.agents.actions import action
from orchestration.agents.http import HttpAgent
from orchestration.console.metrics.machinery import _waits
from orchestration.console.queries.counters import waits
from orchestration.models import Alert, Event, Operation, Task, Wait
from orchestration.operations import lifecycle
from orchestration.people.person import Person
from orchestration.testing import outcomes
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.operators import browser, person
from tests.support.page import conflict_of, page, query_count

pytestmark = pytest.mark.django_db
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
REVIEW = Declared(
    name="review", person="fraud", request={"cents": 5}, returns=OK, remind=[60.0, 120.0],
    refused={"unclear": "pass"}, ends_within=3600.0,
)  # fmt: skip


@pytest.fixture
def declare(monkeypatch):
    def add(*steps, name="w"):
        workflow = Workflow(name=name, steps=list(steps), time_allowed=1e6)
        monkeypatch.setitem(registry.workflows, name, workflow)

    return add


class Bank(HttpAgent):
    """One that can be asked."""

    name = "bank"
    base_url = "http://127.0.0.1:9"

    @action
    async def charge(self, call):
        """Charge a card."""
        return await self.post(call, "/charges", body=call.payload)

    async def ask(self, call):
        """Say what became of a charge."""
        return await self.get(call, f"/charges/{call.key}")


@pytest.fixture(autouse=True)
def bank(monkeypatch):
    monkeypatch.setitem(registry.agents, "bank", Bank)


@pytest.fixture
def greeting(declare, run):
    """A task whose service accepted the greeting, and brings the result later."""
    declare(
        Declared(name="hello", agent="greeter", action="greet", request={"to": "Ada"}, undo=None)
    )
    run.script("greeter.greet", outcomes.later({"url": "https://x.example/1"}, id="pi_1", look=60))
    task = run.submit("w")
    run.go()
    return task


@pytest.fixture
def review(declare, run):
    """A task that waits for a person."""
    declare(REVIEW)
    task = run.submit("w")
    run.go()
    return task


def able(*permissions, name="ann"):
    return browser(person(name, "operate", *permissions))


def row_of(task):
    return Task.named(task.workflow, task.reference)


def step_of(task, name):
    return row_of(task).steps.get(name=name)


def shown(client, task):
    return page(client.get(reverse("ops:task", args=[row_of(task).id]))).only("#live")


def record(
    client, step, *, result='{"ok": true}', ended="done", code="", reason="as agreed", **more
):
    typed = {"attempt": step.attempt, "ended": ended, "code": code, "reason": reason}
    return client.post(reverse("ops:record", args=[step.id]), {**typed, "payload": result, **more})


class TestTaskPage:
    def test_accepted_step_says_what_it_waits_for(self, run, greeting):
        live = shown(able("correct"), greeting)
        assert (
            live.only(".ops-now")
            .only("strong")
            .text.startswith("“hello”: waits for the result from greeter, due in")
        )
        step = live.only(".ops-step")
        assert "ops-failed" not in step["class"]
        assert step.texts(".badge") == ["awaiting", "later"]
        assert step.only('[data-fact="external"]').texts("code") == ["pi_1"]
        assert "https://x.example/1" in step.only("[data-accepted]").text
        assert not Alert.objects.exists()

    def test_service_that_can_be_asked_says_when(self, declare, run):
        declare(Declared(name="pay", agent="bank", action="charge", undo=None))
        run.script("bank.charge", outcomes.later(look=60))
        task = run.submit("w")
        run.wait(61)
        step = shown(able(), task).only(".ops-step")
        assert step.only('[data-fact="asked"]').text == "1 time"
        assert step.only('[data-fact="look"]').text.startswith("in ")

    def test_decision_names_its_role_and_its_reminders(self, run, review):
        run.wait(61)
        live = shown(able(), review)
        assert "waits for a decision by fraud, due" in live.only(".ops-now").text
        assert live.only('[data-fact="reminders"]').text == "1 of 2 sent"
        assert (
            live.all(f'[href="{reverse("ops:record", args=[step_of(review, "review").id])}"]') == []
        )

    def test_list_of_tasks_says_it_too(self, review):
        assert "waits for a decision by fraud" in able().get(reverse("ops:tasks")).text

    def test_page_costs_one_query_more(self, declare, run, review):
        client = able("correct")
        before = query_count(client, reverse("ops:task", args=[row_of(review).id]))
        declare(REVIEW, Declared(name="goods", signal="arrived"))
        both = run.submit("w")
        run.go()
        assert query_count(client, reverse("ops:task", args=[row_of(both).id])) == before


class TestRecord:
    def test_result_ends_the_step(self, run, review):
        client, step = able("correct"), step_of(review, "review")
        form = page(client.get(reverse("ops:record", args=[step.id])))
        assert "ok" in form.only("[data-expected]").text
        assert form.only("[data-codes]").texts("code") == ["unclear"]
        assert record(client, step).status_code == 303
        assert (review.state, review.result("review")) == ("processed", {"ok": True})
        reported, by_hand = Event.objects.filter(step=step).order_by("id")
        assert (reported.kind, reported.actor) == ("reported", "ann")
        assert (by_hand.kind, by_hand.reason, by_hand.detail["result"]) == (
            "by_hand", "as agreed", {"ok": True},
        )  # fmt: skip
        events = shown(client, review).section("h-events").rows()
        assert [row[1] for row in events] == ["Result recorded", "Result reported"]

    def test_refusal_is_what_the_workflow_says(self, review):
        step = step_of(review, "review")
        answer = record(able("correct"), step, ended="refused", code="unclear", result="")
        assert answer.status_code == 303
        assert review.steps == {"review": "skipped"}

    def test_refusal_with_another_code_is_an_error(self, review):
        record(able("correct"), step_of(review, "review"), ended="refused", code="no", result="")
        assert review.steps == {"review": "error"}
        assert step_of(review, "review").error_message == "as agreed"

    def test_refusal_is_not_taken_for_a_decision_on_the_error(self, run, greeting):
        step = step_of(greeting, "hello")
        record(able("correct"), step, ended="refused", code="no", result="")
        url = reverse("ops:resubmit", args=[step.id])
        typed = {"attempt": step.attempt, "reason": "again"}
        assert able("resubmit", name="bob").post(url, typed).status_code == 303
        run.go()
        actor, sentence = conflict_of(able("resubmit", name="eve").post(url, typed))
        assert (actor, "resubmitted it" in sentence) == ("bob", True)

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ({"result": '{"ok": 1}'}, "payload"),
            ({"ended": "refused", "code": ""}, "code"),
            ({"reason": ""}, "reason"),
        ],
    )
    def test_form_says_what_is_wrong(self, review, wrong, field):
        answer = record(able("correct"), step_of(review, "review"), **wrong)
        assert answer.status_code == 422
        assert [error["id"] for error in page(answer).all(".wrong")] == [f"id_{field}_error"]
        assert review.steps == {"review": "awaiting"}

    def test_report_that_came_first_is_named(self, run, review):
        client, step = able("correct"), step_of(review, "review")
        run.complete(review, "review", {"ok": True}, actor="the bank")
        run.go()
        for late in (record(client, step), client.get(reverse("ops:record", args=[step.id]))):
            actor, sentence = conflict_of(late)
            assert actor == "the bank"
            assert "reported its result" in sentence
            assert "awaits no result: it is processed" in late.text
        assert not Event.objects.filter(kind="by_hand").exists()

    def test_step_of_an_undone_task_is_a_conflict(self, run, review):
        step = step_of(review, "review")
        api.request_undo("w", review.reference, actor="bea", reason="no", id=uuid4())
        run.go()
        assert conflict_of(record(able("correct"), step))[0] == "bea"

    def test_needs_the_permission(self, review):
        assert record(able(), step_of(review, "review")).status_code == 403


class TestMoney:
    @pytest.fixture(autouse=True)
    def moves_money(self, monkeypatch):
        monkeypatch.setattr(registry.agents["greeter"], "moves_money", True)

    @pytest.mark.parametrize(
        ("typed", "state"),
        [
            ({"result": '{"id": "1"}'}, "processed"),
            ({"ended": "refused", "code": "no", "result": ""}, "error"),
        ],
    )
    def test_second_person_confirms(self, run, greeting, typed, state):
        step = step_of(greeting, "hello")
        answer = record(able("correct"), step, **typed)
        operation = Operation.objects.get()
        assert answer["Location"] == reverse("ops:operation", args=[operation.id])
        assert operation.state == "approval"
        assert greeting.steps == {"hello": "awaiting"}
        assert able(name="eve").get(answer["Location"]).status_code == 200
        lead = person("lead", "operate", "approve")
        assert lifecycle.approve(operation.id, actor=Person.of(lead)) is None
        run.wait(60)
        assert greeting.steps == {"hello": state}
        event = Event.objects.get(step=step, kind="by_hand")
        assert (event.actor, event.operation_id) == ("ann", operation.id)

    def test_what_ended_meanwhile_is_left(self, run, greeting):
        record(able("correct"), step_of(greeting, "hello"), result='{"id": "1"}')
        run.complete(greeting, "hello", {"id": "2"})
        run.go()
        operation = Operation.objects.get()
        lead = person("lead", "operate", "approve")
        lifecycle.approve(operation.id, actor=Person.of(lead))
        run.wait(60)
        assert greeting.result("hello") == {"id": "2"}
        assert operation.item_set.get().state == "skipped"


class TestElsewhere:
    @pytest.mark.parametrize(
        "query", ["is:awaiting", "step:review", "state:processing step:review"]
    )
    def test_searches_find_it(self, review, query):
        other = f"{query} -is:awaiting"
        assert review.reference in able().get(reverse("ops:tasks"), {"q": query}).text
        assert "data-open" not in able(name="bea").get(reverse("ops:tasks"), {"q": other}).text

    def test_metrics_count_what_is_late(self, run, review):
        assert waits(10) == {("w", "review"): (1, 0, 0)}
        Wait.objects.update(ends_by=run.clock.now)
        run.clock.move_to(run.clock.now + timedelta(seconds=1))
        assert waits(10) == {("w", "review"): (1, 1, 0)}
        names = {metric.name: metric for metric in _waits()}
        assert [sample.value for sample in names["sas_awaiting_late"].samples] == [1]

    def test_page_of_workflows_shows_it(self, review):
        shown = page(able().get(reverse("ops:workflows"))).only("#workflow-w")
        row = shown.only('[data-step="review"]')
        assert row.only("[data-ends]").text == "ends within 1 h, or else: error"
        assert [cell.text for cell in row.all(".num")] == ["0", "0", "1", "0", "0"]
        assert shown.only("g").only("rect")["rx"] == "26"
        assert "person fraud" in shown.only("g").text

    def test_state_store_has_it_as_processing(self, review):
        admin = browser(person("root", is_superuser=True, is_staff=True))
        address = reverse("admin:orchestration_statestore_changelist")
        assert review.reference in admin.get(address, {"process_state": "Processing"}).text
        assert review.reference not in admin.get(address, {"process_state": "Pending"}).text
        waits = admin.get(reverse("admin:orchestration_wait_changelist"))
        assert "fraud" in waits.text


def tasks(*arguments):
    out = StringIO()
    call_command("tasks", *arguments, stdout=out)
    return json.loads(out.getvalue())


class TestCommand:
    def test_complete_with_a_result(self, review):
        name = f"w/{review.reference}"
        (step,) = tasks("show", name)["steps"]
        assert (step["process_state"], bool(step["awaited_until"])) == ("awaiting", True)
        done = tasks("complete", name, "review", "--result", '{"ok": true}', "--reason", "agreed")
        assert done == {"done": "recorded"}
        assert review.state == "processed"

    def test_complete_with_a_refusal(self, review):
        tasks(
            "complete", f"w/{review.reference}", "review", "--refused", "unclear", "--reason", "x"
        )
        assert review.steps == {"review": "skipped"}

    @pytest.mark.parametrize(
        ("step", "result", "problem"),
        [
            ("review", '{"ok": 1}', "ok"),
            ("pay", "{}", "the step does not exist"),
        ],
    )
    def test_complete_refuses(self, review, step, result, problem):
        with pytest.raises(CommandError, match=problem):
            tasks("complete", f"w/{review.reference}", step, "--result", result, "--reason", "x")

    def test_complete_after_the_end(self, run, review):
        run.complete(review, "review", {"ok": True})
        run.go()
        with pytest.raises(CommandError, match="has been reported"):
            tasks("complete", f"w/{review.reference}", "review", "--refused", "x", "--reason", "x")
