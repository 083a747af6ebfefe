"""What operators see of steps that are not needed, and of steps that were done by hand."""

import csv
import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse

from orchestration import registry
from orchestration.api import (
    Rejected,
    Step,
    Workflow,
    done,
    field,
    first,
    key,
    not_,
    passed,
    result,
)
from orchestration.incidents import aggregation
from orchestration.models import Event, Incident, Task
from orchestration.models import Step as Row
from orchestration.testing import outcomes
from orchestration.transitions.holds import hold
from orchestration.transitions.resubmit import done_by_hand, resubmit
from tests.support.operators import browser, person
from tests.support.page import page, query_count

pytestmark = pytest.mark.django_db


def sort(request):
    """Say what an order needs."""
    if request["cents"] < 0:
        raise Rejected("negative", "less than nothing")
    return {"ships": request["cents"] > 5}


def call(name, **fields):
    undo = {"undo": "take_back", "undo_request": {"key": key(name)}}
    request = {"to": field("name")}
    return Step(
        name=name, agent="greeter", action="greet", **{"request": request, **undo, **fields}
    )


WORKFLOW = Workflow(
    name="parcel",
    personal=[field("name")],
    steps=[
        Step(name="sort", compute=sort, request={"cents": field("cents")}),
        call("ship", after=["sort"], when=result("sort", "ships")),
        call("first", after=["ship"], refused={"not_served": "pass"}),
        call("second", after=["first"], when=passed("first", "not_served")),
        call(
            "letter",
            after=["second"],
            when=not_(field("quiet", default=False)),
            request={
                "to": field("name"),
                "parcel": first(result("first", "id"), result("second", "id")),
                "shipped": done("ship"),
            },
        ),
    ],
)
SHIPS = "sort.ships"
NAME = "Ada-of-Bath"


@pytest.fixture
def parcel(monkeypatch, run):
    monkeypatch.setitem(registry.workflows, "parcel", WORKFLOW)
    run.script("greeter.greet", outcomes.done(id="g1"))
    run.policy("greeter", tries=1)
    return lambda **data: run.submit("parcel", {"name": NAME, "cents": 1, **data})


def shown(client, task):
    return page(client.get(address(task)))


def shown_on_hold(client, task, run):
    """Return the page of a task whose calls are not sent."""
    hold(actor="ann", reason="down", agent="greeter")
    run.go()
    return shown(client, task)


def address(task):
    row = Task.objects.get(reference=task.reference)
    return reverse("ops:task", args=[row.id])


def step(live, name):
    (card,) = [card for card in live.all(".ops-step") if name in card.only("h3").text.split()]
    return card


class TestTask:
    def test_step_whose_condition_does_not_hold_says_so(self, client, parcel, run):
        task = parcel()
        run.go()
        live = shown(client, task)
        ship = step(live, "ship")
        assert ship.only(".badge.skipped").text == "skipped"
        assert ship.all("p")[0].text == f"not needed: its condition does not hold ({SHIPS})"
        assert ship.only('[data-fact="condition"]').text == SHIPS
        assert json.loads(ship.only("pre").text) == {"to": "«name of the input»"}
        assert ship.only("summary").text == "Request (not sent)"
        assert live.only(".ops-now").text.endswith("all steps are done; 2 were not needed.")

    def test_step_that_waits_shows_its_condition(self, client, parcel, run):
        task = parcel()
        second = step(shown_on_hold(client, task, run), "second")
        assert second.all("p")[0].text == (
            "waiting for “first”; needed if first is passed over (not_served)"
        )

    def test_refusal_that_is_passed_over_is_not_shown_as_an_error(self, client, parcel, run):
        run.script("greeter.greet", outcomes.rejected("not_served", f"{NAME} is on an island"))
        task = parcel(quiet=True)
        run.go()
        live = shown(client, task)
        card = step(live, "first")
        assert card.all("p")[0].text == "not needed: refused with not_served, and passed over"
        assert card.only('[data-fact="refusals"]').text == "not_served is passed over"
        assert card.all(".ops-error") == []
        assert NAME not in card.text

    def test_planned_request_says_what_it_will_take(self, client, parcel, run):
        task = parcel()
        letter = step(shown_on_hold(client, task, run), "letter")
        request = json.loads(letter.only("pre").text)
        assert request["parcel"] == "«first.id or else second.id»"
        assert request["shipped"] == "«whether ship is done»"
        assert letter.only('[data-fact="condition"]').text == "not (input.quiet or else false)"

    def test_step_done_by_hand_names_the_person(self, client, parcel, run):
        run.script("greeter.greet", outcomes.rejected("full"))
        task = parcel()
        run.go()
        failed = Row.objects.get(task__reference=task.reference, name="first")
        how = {"attempt": failed.attempt, "actor": "olga", "reason": "by phone"}
        assert done_by_hand(failed.id, result={"id": "x"}, **how) is None
        card = step(shown(client, task), "first")
        assert card.all("p")[0].text == "done by hand by olga"
        assert card.only("[data-by-hand]")
        assert card.only(".badge.processed")
        assert Event.objects.get(kind="by_hand").actor == "olga"

    def test_skipped_steps_cost_no_query(self, client, parcel, run):
        tasks = parcel(), parcel(cents=9)
        run.go()
        counts = {query_count(client, address(task)) for task in tasks}
        assert len(counts) == 1
        assert {task.steps["ship"] for task in tasks} == {"skipped", "processed"}


class TestElsewhere:
    def test_workflow_is_drawn_with_its_conditions(self, client, parcel):
        section = page(client.get("/ops/workflows/")).only("#workflow-parcel")
        drawn = section.only("svg")
        optional = drawn.all("g.optional")
        assert [box.only(".name").text for box in optional] == ["ship", "first", "second", "letter"]
        assert [box.only(".flow").text for box in optional[:2]] == [
            f"if {SHIPS}", "passes over not_served",
        ]  # fmt: skip
        assert optional[0].only("title").text == f"Needed if {SHIPS}."
        assert optional[1].only("title").text == "Refusals: not_served is passed over."
        assert len(drawn.all("path.optional")) == 3
        row = section.only('[data-step="ship"]')
        assert row.only("[data-condition]").text == f"needed if {SHIPS}"
        refusals = section.only('[data-step="first"]').only("[data-refusals]").text
        assert refusals == "In this workflow: not_served is passed over."

    def test_plain_workflow_is_drawn_as_before(self, client, parcel):
        drawn = page(client.get("/ops/workflows/")).only("#workflow-greet").only("svg")
        assert drawn.all(".optional") == drawn.all("title") == drawn.all(".flow") == []
        assert {box["height"] for box in drawn.all("rect")} == {"74"}

    def test_command_says_why_and_by_whom(self, parcel, run):
        task = parcel()
        run.go()
        printed = StringIO()
        call_command("tasks", "show", f"parcel/{task.reference}", stdout=printed)
        steps = {step["name"]: step for step in json.loads(printed.getvalue())["steps"]}
        assert steps["ship"]["needed_if"] == SHIPS
        assert steps["ship"]["skipped"] == f"not needed: its condition does not hold ({SHIPS})"
        assert steps["first"]["if_refused"] == "not_served is passed over"
        assert {"flow", "needed_if", "skipped"}.isdisjoint(steps["sort"])
        assert steps["first"]["done_by"] == ""

    def test_form_offers_the_optional_field_of_a_condition(self, parcel):
        starter = browser(person("olga", "operate", "see_personal", "start"))
        form = page(starter.get(reverse("ops:start", args=["parcel"])))
        assert "required" in form.only('[name="input-name"]').attributes
        assert "required" not in form.only('[name="input-quiet"]').attributes

    def test_list_and_export_say_how_many_steps_were_not_needed(self, parcel, run):
        seer = browser(person("sue", "operate", "see_personal"))
        tasks = parcel(), parcel(cents=9)
        run.go()
        form = {"narrowing": "q=columns%3Areference%2Cnext", "format": "csv"}
        file = b"".join(seer.post("/ops/export/tasks/", form).streaming_content)
        rows = csv.DictReader(file.decode("utf-8-sig").splitlines())
        next_of = {row["reference"]: row["next"] for row in rows}
        assert [next_of[task.reference] for task in tasks] == [
            "Ended: all steps are done; 2 were not needed",
            "Ended: all steps are done; 1 was not needed",
        ]
        assert "2 were not needed" in page(seer.get("/ops/tasks/")).text

    def test_failure_that_ends_in_a_passed_over_refusal_is_mended(self, client, parcel, run):
        run.script("greeter.greet", outcomes.rejected("full"), outcomes.rejected("not_served"))
        task = parcel(quiet=True)
        run.go()
        aggregation.aggregate("housekeeper-1")
        incident = Incident.objects.get(code="full")
        failed = Row.objects.get(task__reference=task.reference, name="first")
        resubmit(failed.id, attempt=failed.attempt, actor="ann", reason="again")
        run.script("greeter.greet", outcomes.rejected("not_served"), outcomes.done(id="g2"))
        run.go()
        aggregation.aggregate("housekeeper-1")
        assert task.steps["first"] == "skipped"
        assert task.state == "processed"
        incident.refresh_from_db()
        assert incident.open_tasks == 0
        seen = page(client.get(f"/ops/incidents/{incident.id}/"))
        assert seen.only('[data-fixed="1"][data-again="0"][data-in-progress="0"]')
