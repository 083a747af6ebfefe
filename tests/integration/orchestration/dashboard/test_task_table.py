"""The table of tasks: heads that sort, columns to choose, waits shown once, limits of time, exports."""

import csv
import json
from dataclasses import replace

import pytest
from django.db import connection, transaction
from django.db.utils import DatabaseError

from orchestration import conf, registry
from orchestration.api import field
from orchestration.models import Export, Gate, Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.queries import task_export
from orchestration.states import GateState
from tests.support.engine import in_error, new_task
from tests.support.operators import browser, person
from tests.support.page import listed, page, poll_of
from tests.support.together import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(monkeypatch):
    """Three tasks with a value each."""
    known = replace(
        registry.workflows["greet"],
        contact=field("name"),
        value={"amount": field("cents"), "currency": field("money")},
    )
    monkeypatch.setitem(registry.workflows, "greet", known)
    for name, cents in (("b-20", 2000), ("a-5", 500), ("c-9", 900)):
        new_task(name, data={"name": f"{name}@x.example", "cents": cents, "money": "EUR"})


def heads(response):
    return {
        head["data-column"]: (head.attributes.get("aria-sort", ""), head.one("a")["href"])
        for head in page(response).all("th[data-column]")
    }


@pytest.mark.usefixtures("three")
def test_heads_sort_both_ways_and_keep_the_search(client):
    first = client.get("/ops/tasks/?q=state:pending")
    assert heads(first)["created"][0] == "descending"
    assert [sorted_as for sorted_as, _ in heads(first).values()].count("") == len(heads(first)) - 1
    falling = client.get(heads(first)["value"][1])
    assert listed(falling) == ["b-20", "c-9", "a-5"]
    assert heads(falling)["value"][0] == "descending"
    assert heads(falling)["created"][0] == ""
    rising = client.get(heads(falling)["value"][1])
    assert listed(rising) == ["a-5", "c-9", "b-20"]
    assert heads(rising)["value"][0] == "ascending"
    assert page(rising).one("#q")["value"] == "state:pending sort:value"
    back = page(rising).one("#newest-first")["href"]
    assert listed(client.get(back)) == listed(first)
    assert listed(client.get(heads(rising)["task"][1])) == ["a-5", "b-20", "c-9"]


@pytest.mark.usefixtures("three")
def test_every_column_sorts_and_shows(client):
    every = [name for name in task_export.FIELDS if name != "contact"]
    shown = client.get("/ops/tasks/", {"columns": ",".join(every)})
    assert sorted(heads(shown)) == sorted(every)
    for column in every:
        for order in (column, f"-{column}"):
            response = client.get("/ops/tasks/", {"q": f"sort:{order}"})
            assert sorted(listed(response)) == ["a-5", "b-20", "c-9"], order


@pytest.mark.usefixtures("three")
def test_chosen_columns_are_in_the_address_and_in_rows_alone(client):
    asked = {"choose": "1", "q": "b- sort:value", "column": ["value", "workflow"]}
    chosen = client.get("/ops/tasks/", asked)
    assert chosen["Location"] == "/ops/tasks/?q=b-+sort%3Avalue+columns%3Avalue%2Cworkflow"
    shown = client.get(chosen["Location"])
    assert list(heads(shown)) == ["task", "value", "workflow"]
    assert page(shown).one("#column-value").attributes.get("checked") == ""
    in_error(Task.objects.get(reference="b-20"))
    (act,) = page(client.get(chosen["Location"])).all("[data-open-act]")
    assert act["hx-get"].endswith("?in=tasks&columns=task,value,workflow")


@pytest.mark.parametrize(
    ("query", "problem", "meant"),
    [
        ("sort:valu", "unknown column “valu”; did you mean “value”?", "sort:value"),
        ("columns:contact", "unknown column “contact”", None),
        ("a OR sort:value", "“sort:value”: it applies to the whole list", None),
        ("stae:error", "Unknown filter “stae:”; did you mean “state”?", "state:error"),
        ("step:helo OR a", "unknown step; did you mean “hello”?", "step:hello OR a"),
        ("state:error state:pending", "Join them by OR", None),
        (" ".join(f"(a{n} OR b{n})" for n in range(5)), "more than 16 combinations", None),
        (" ".join(f"a{n}" for n in range(61)), "at most 60", None),
        ("(a", "“(” (character 1) is not closed", None),
    ],
)
def test_problem_of_a_search_is_named_and_mended(client, query, problem, meant):
    response = client.get("/ops/tasks/", {"q": query})
    assert response.status_code == 400
    errors = page(response).one(".errors")
    assert problem in errors.text
    offered = errors.all("[data-meant]")
    if meant:
        mended = client.get(offered[0]["href"])
        assert (mended.status_code, page(mended).one("#q")["value"]) == (200, meant)
    else:
        assert page(response).one("#q")["value"] == query


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("hello", ["step:hello"]),
        ("error -a", ["state:error -a"]),
        ("greeter", ["agent:greeter"]),
        ("rejected_code", ["error:rejected_code"]),
        ("helo", ["step:hello"]),
        ("r-1 or r-2", ["r-1 OR r-2"]),
        ("r-1", []),
    ],
)
def test_words_that_are_names_are_offered_as_filters(client, query, meant):
    in_error(new_task("r-1"))
    response = client.get("/ops/tasks/", {"q": query})
    found = page(response).all("[data-meant]")
    texts = [page(client.get(link["href"])).one("#q")["value"] for link in found]
    assert set(meant) <= set(texts)
    assert bool(texts) == bool(meant)


def test_wait_of_many_rows_is_shown_once(client):
    for number in range(4):
        new_task(f"r-{number}")
    Gate.objects.filter(agent="greeter").update(state=GateState.OPEN, probe_at=DatabaseNow())
    shown = page(client.get("/ops/tasks/"))
    assert shown.one("#waits-greeter")["data-waits"] == "4"
    assert [cell.one("a")["href"] for cell in shown.all(".ops-next")] == ["#waits-greeter"] * 4
    few = page(client.get("/ops/tasks/?q=r-1"))
    assert few.all("[data-waits]") == []


@pytest.mark.django_db(transaction=True)
def test_search_that_takes_too_long_is_stopped(client, monkeypatch):
    monkeypatch.setattr(conf, "SEARCH_TIMEOUT_S", 0.2)
    new_task("r-1")
    client.get("/ops/tasks/?q=r-1")

    def search():
        return client.get("/ops/tasks/?q=r-1")

    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE orchestration_step IN ACCESS EXCLUSIVE MODE")
        answer = at_once({"search": lambda: client.get("/ops/tasks/?q=step:hello")})["search"]
    assert answer.status_code == 503
    assert page(answer).one("#q")["value"] == "step:hello"
    assert page(answer).one(".errors").all("li")
    assert listed(search()) == ["r-1"]


def export(client, query, form):
    return client.post("/ops/tasks/export/", {"q": query, "format": form})


def body(response) -> str:
    return b"".join(response.streaming_content).decode()


@pytest.mark.usefixtures("three")
def test_export_has_the_columns_and_order_of_the_list(monkeypatch):
    monkeypatch.setattr(task_export, "CHUNK", 2)
    viewer = browser(person("vic", "operate", "see_personal"))
    query = "state:pending sort:-value columns:task,contact,value"
    sent = export(viewer, query, "csv")
    rows = list(csv.DictReader(body(sent).splitlines()))
    assert [(row["task"], row["value"], row["contact"]) for row in rows] == [
        ("b-20", "20.00", "b-20@x.example"),
        ("c-9", "9.00", "c-9@x.example"),
        ("a-5", "5.00", "a-5@x.example"),
    ]
    assert "attachment" in sent["Content-Disposition"]
    records = json.loads(body(export(viewer, query, "json")))
    assert [record["task"] for record in records] == ["b-20", "c-9", "a-5"]
    assert {record["currency"] for record in records} == {"EUR"}


@pytest.mark.usefixtures("three")
def test_export_is_in_the_history_before_its_first_row(client):
    sent = export(client, "b- sort:value", "json")
    recorded = Export.objects.get()
    assert (recorded.actor, recorded.query, recorded.rows) == ("ann", "b- sort:value", 1)
    assert recorded.personal is False
    assert len(json.loads(body(sent))) == 1
    line = page(client.get("/ops/audit/?kind=export")).rows()[0]
    assert "ann" in line
    with pytest.raises(DatabaseError), transaction.atomic():
        Export.objects.update(rows=0)


@pytest.mark.usefixtures("three")
def test_export_hides_what_the_list_hides(client):
    step = Step.objects.filter(task__reference="b-20").first()
    in_error(step.task)
    Step.objects.filter(id=step.id).update(error_message="b-20@x.example is unknown")
    text = body(export(client, "", "csv")) + body(export(client, "", "json"))
    assert "x.example" not in text
    assert "contact" not in text
    refused = export(client, "columns:contact", "csv")
    assert refused.status_code == 303
    assert Export.objects.count() == 2


def test_export_writes_no_formula(client):
    for name in ("=1+1", "+1", "-1", "@x", "\tx", "\rx", "a=1"):
        new_task(name)
    rows = list(csv.DictReader(body(export(client, "columns:task", "csv")).split("\r\n")))
    assert {row["task"] for row in rows} == {"'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "a=1"}
    assert json.loads(body(export(client, "nothing", "json"))) == []
    assert body(export(client, "nothing", "csv")) == ""


def test_export_stops_at_its_most(client, monkeypatch):
    monkeypatch.setattr(task_export, "MOST", 3)
    monkeypatch.setattr(task_export, "CHUNK", 2)
    for number in range(5):
        new_task(f"r-{number}")
    assert len(json.loads(body(export(client, "", "json")))) == 3
    assert Export.objects.get().rows == 3


def test_export_requires_an_operator_and_a_search_that_is_understood(client):
    assert browser(person("eve")).post("/ops/tasks/export/", {"format": "csv"}).status_code == 403
    assert client.get("/ops/tasks/export/").status_code == 405
    for query, form in (("stp:x", "csv"), ("", "xlsx")):
        assert export(client, query, form).status_code == 303
    assert not Export.objects.exists()


def test_poll_of_a_sorted_list_keeps_its_rows(client):
    steps = [in_error(new_task(name)) for name in ("b", "a", "c")]
    before = client.get("/ops/tasks/?q=state:error+sort:task")
    assert listed(before) == ["a", "b", "c"]
    Task.objects.filter(id=steps[0].task_id).update(label="z")
    in_error(new_task("aa"))
    polled = client.get(poll_of(before), headers={"HX-Request": "true"})
    assert listed(polled) == ["a", "z", "c"]
    assert page(polled).one("#fresh")["data-fresh"] == "1"
