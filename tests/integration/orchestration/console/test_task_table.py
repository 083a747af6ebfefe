"""The table of tasks: heads that sort, columns to choose, waits shown once, limits of time."""

import pytest
from django.db import connection, transaction

from orchestration import conf
from orchestration.console.queries import task_export
from orchestration.models import Gate, Task
from orchestration.models.fields import DatabaseNow
from orchestration.states import GateState
from tests.support.engine import in_error, new_task
from tests.support.page import listed, page, poll_of
from tests.support.together import at_once

pytestmark = pytest.mark.django_db


def heads(response):
    return {
        head["data-column"]: (head.attributes.get("aria-sort", ""), head.only("a")["href"])
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
    assert page(rising).only("#q")["value"] == "state:pending sort:value"
    back = page(rising).only("#newest-first")["href"]
    assert listed(client.get(back)) == listed(first)
    assert listed(client.get(heads(rising)["task"][1])) == ["a-5", "b-20", "c-9"]


@pytest.mark.usefixtures("three")
def test_every_column_sorts_and_shows(client):
    every = [name for name in task_export.FIELDS if name != "contact"]
    shown = client.get("/ops/tasks/", {"columns": ",".join(every)})
    assert sorted(heads(shown)) == sorted(every)
    heads_of_table = page(shown).only("thead").all("th")
    rows = [row for row in page(shown).rows() if len(row) > 1]  # not the places for more of a row
    assert {len(row) for row in rows} == {len(heads_of_table)}
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
    assert page(shown).only("#column-value").attributes.get("checked") == ""
    in_error(Task.objects.get(reference="b-20"))
    (act,) = page(client.get(chosen["Location"])).all("[data-open-act]")
    assert act["hx-get"].endswith("?in=tasks&columns=task,value,workflow")


@pytest.mark.parametrize(
    ("query", "problem", "expected"),
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
def test_problem_of_a_search_is_named_and_mended(client, query, problem, expected):
    response = client.get("/ops/tasks/", {"q": query})
    assert response.status_code == 400
    errors = page(response).only(".errors")
    assert problem in errors.text
    offered = errors.all("[data-meant]")
    if expected:
        mended = client.get(offered[0]["href"])
        assert (mended.status_code, page(mended).only("#q")["value"]) == (200, expected)
    else:
        assert page(response).only("#q")["value"] == query


@pytest.mark.parametrize(
    ("query", "expected"),
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
def test_words_that_are_names_are_offered_as_filters(client, query, expected):
    in_error(new_task("r-1"))
    response = client.get("/ops/tasks/", {"q": query})
    links = page(response).all("[data-meant]")
    texts = [page(client.get(link["href"])).only("#q")["value"] for link in links]
    assert set(expected) <= set(texts)
    assert bool(texts) == bool(expected)


def test_wait_of_many_rows_is_shown_once(client):
    for number in range(4):
        new_task(f"r-{number}")
    Gate.objects.filter(agent="greeter").update(state=GateState.OPEN, probe_at=DatabaseNow())
    shown = page(client.get("/ops/tasks/"))
    assert shown.only("#waits-greeter")["data-waits"] == "4"
    assert [cell.only("a")["href"] for cell in shown.all(".ops-next")] == ["#waits-greeter"] * 4
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
    assert page(answer).only("#q")["value"] == "step:hello"
    assert page(answer).only(".errors").all("li")
    assert listed(search()) == ["r-1"]


def test_poll_of_a_sorted_list_keeps_its_rows(client):
    steps = [in_error(new_task(name)) for name in ("b", "a", "c")]
    before = client.get("/ops/tasks/?q=state:error+sort:task")
    assert listed(before) == ["a", "b", "c"]
    Task.objects.filter(id=steps[0].task_id).update(label="z")
    in_error(new_task("aa"))
    polled = client.get(poll_of(before), headers={"HX-Request": "true"})
    assert listed(polled) == ["a", "z", "c"]
    assert page(polled).only("#fresh")["data-fresh"] == "1"
