"""What operators see of steps that wait for their time before they begin."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse

from orchestration import registry
from orchestration.console.metrics.machinery import _waits
from orchestration.console.queries.counters import waits
from orchestration.models import Task
from orchestration.payloads.placeholders import done, field, not_
from orchestration.testing import outcomes
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.operators import browser, person
from tests.support.page import page, query_count

pytestmark = pytest.mark.django_db
DAY = 86_400.0


@pytest.fixture
def order(monkeypatch, run):
    """A task with a step that waits for three days, one for a date, and one for that."""
    call = {"agent": "greeter", "action": "greet", "request": {"to": "Ada"}, "undo": None}
    steps = [
        Declared(name="pay", **call),
        Declared(name="wrap", after=["ship"], **call),
        Declared(name="ship", after=["pay"], not_before=field("release"), **call),
        Declared(name="remind", after=["pay"], not_before=3 * DAY, when=not_(done("ship")), **call),
    ]
    monkeypatch.setitem(
        registry.workflows, "w", Workflow(name="w", steps=steps, time_allowed=3600.0)
    )
    run.script("greeter.greet", outcomes.done(text="hi"))
    task = run.submit("w", {"release": (run.clock.now + timedelta(days=9)).isoformat()})
    run.go()
    return task


def able(name="ann"):
    return browser(person(name, "operate"))


def shown(order):
    task = Task.named(order.workflow, order.reference)
    return page(able().get(reverse("ops:task", args=[task.id]))).only("#live")


class TestTaskPage:
    def test_says_when_each_step_begins(self, order):
        live = shown(order)
        assert live.only(".ops-now").only("strong").text.startswith("“ship”: begins in 9 d")
        ship, remind = live.all(".ops-step")[2:]
        assert ship.texts('[data-fact="begins"]') == ["input.release"]
        assert remind.texts('[data-fact="begins"]') == ["3 d"]
        assert "needed if ship is not done" in remind.text
        assert remind.text.count("begins in 3 d") == 1

    def test_says_so_once_its_time_has_come(self, run, order):
        run.clock.move_to(run.clock.now + timedelta(days=10))
        assert "“ship”: begins now" in shown(order).only(".ops-now").text

    def test_costs_one_query_more_than_without(self, run, order):
        task = Task.named(order.workflow, order.reference)
        address = reverse("ops:task", args=[task.id])
        with_waits = query_count(able(), address)
        run.wait(20 * DAY)
        assert order.state == "processed"
        assert with_waits - query_count(able("bea"), address) in {0, 1}


class TestElsewhere:
    def test_search_finds_it(self, order):
        client = able()
        for query, matches in (
            ("is:delayed", True),
            ("-is:delayed", False),
            ("is:awaiting", False),
        ):
            text = client.get(reverse("ops:tasks"), {"q": query}).text
            assert (order.reference in text) is matches, query

    def test_list_says_when_it_begins(self, order):
        assert "begins in 9 d" in page(able().get(reverse("ops:tasks"))).only("main").text

    def test_metrics_count_it(self, order):
        assert waits(10) == {("w", "ship"): (0, 0, 1), ("w", "remind"): (0, 0, 1)}
        values = {metric.name: [sample.value for sample in metric.samples] for metric in _waits()}
        assert values == {"sas_awaiting": [], "sas_awaiting_late": [], "sas_delayed": [1, 1]}

    def test_page_of_workflows_says_it(self, order):
        shown = page(able().get(reverse("ops:workflows"))).only("#workflow-w")
        row = shown.only('[data-step="remind"]')
        assert row.only("[data-begins]").text == "not before 3 d"
        assert "not before 3 d" in shown.only("svg").text

    def test_command_says_it(self, run, order):
        out = StringIO()
        call_command("tasks", "show", f"w/{order.reference}", stdout=out)
        steps = {step["name"]: step for step in json.loads(out.getvalue())["steps"]}
        assert (steps["ship"]["not_before"], steps["remind"]["not_before"]) == (
            "input.release", "259200.0",
        )  # fmt: skip
        assert steps["remind"]["begins_at"] == str(run.clock.start + timedelta(days=3))
        assert steps["wrap"]["begins_at"] is None

    def test_admin_lists_the_wait(self, order):
        admin = browser(person("root", is_superuser=True, is_staff=True))
        assert "greeter" in admin.get(reverse("admin:orchestration_wait_changelist")).text
