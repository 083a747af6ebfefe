"""The list of tasks: pages both ways, rows that stay in place, search, saved views."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from orchestration import registry
from orchestration.api import field
from orchestration.console.queries.task_list import PAGE
from orchestration.models import SavedView, Task
from orchestration.models.saved import MOST_VIEWS
from orchestration.transitions.create import NewTask, create
from tests.support.engine import in_error, new_task
from tests.support.operators import browser, person, press
from tests.support.page import POLL, listed, page, poll_of

pytestmark = pytest.mark.django_db


def make(count, prefix="n"):
    new = [
        NewTask(workflow="greet", reference=f"{prefix}{n:03}", data={"name": "A"})
        for n in range(count)
    ]
    with transaction.atomic():
        return create(new)


def link(response, rel) -> str:
    """Return the address of another page of the list, or nothing."""
    links = page(response).only("#live").all(f'[rel="{rel}"]')
    return links[0]["href"] if links else ""


@pytest.mark.parametrize(
    "query", ["", "q=state:pending", "state=pending", "q=n", "workflow=greet&reference=n"]
)
def test_pages_go_both_ways_without_gap_or_repeat(client, query):
    make(2 * PAGE + 5)
    Task.objects.update(created_at=Task.objects.earliest("created_at").created_at)

    def get(address):
        return client.get(f"/ops/tasks/{address}")

    first = get(f"?{query}")
    assert not link(first, "prev")
    second = get(link(first, "next"))
    third = get(link(second, "next"))
    assert not link(third, "next")
    names = [listed(response) for response in (first, second, third)]
    assert [len(listed_page) for listed_page in names] == [PAGE, PAGE, 5]
    assert sorted(name for listed_page in names for name in listed_page) == [
        f"n{n:03}" for n in range(2 * PAGE + 5)
    ]
    assert listed(get(link(third, "prev"))) == names[1]
    assert listed(get(link(second, "prev"))) == names[0]
    assert listed(get(link(second, "first"))) == names[0]
    last = get(link(first, "last"))
    assert listed(last) == (names[1] + names[2])[-PAGE:]
    assert not link(last, "next")
    assert listed(get(link(last, "prev"))) == (names[0] + names[1])[5 : PAGE + 5]


def test_rows_stay_in_place_while_they_are_read(client):
    steps = [in_error(new_task(name)) for name in ("one", "two", "three")]
    before = client.get("/ops/tasks/?q=state:error")
    assert listed(before) == ["three", "two", "one"]
    press(client, steps[1])  # no longer in the list
    in_error(new_task("four"))  # new in the list
    polled = client.get(poll_of(before), headers=POLL)
    assert listed(polled) == ["three", "two", "one"]
    refresh = page(polled).only("#fresh")
    assert (refresh["data-fresh"], refresh["data-gone"]) == ("1", "1")
    assert refresh.numbers() == [1, 1]
    (gone,) = page(polled).all("tr.gone")
    assert gone.only("a[data-open]").text == "two"
    assert client.get(poll_of(polled), headers=POLL).status_code == 204
    assert listed(client.get("/ops/tasks/?q=state:error")) == ["four", "three", "one"]


def test_rows_of_the_next_page_do_not_count_as_new(client):
    make(PAGE + 3)
    before = client.get("/ops/tasks/?q=state:pending")
    newest = Task.objects.latest("id")
    Task.objects.filter(id=newest.id).update(state="processing")
    refresh = page(client.get(poll_of(before), headers=POLL)).only("#fresh")
    assert (refresh["data-fresh"], refresh["data-gone"]) == ("0", "1")
    assert refresh.numbers() == [1]


def test_form_matches_the_search_box(client):
    in_error(new_task("a-1"))
    asked = {"narrow": "1", "q": "a-1", "state": "error", "step": "", "attempts": ">0", "is": ""}
    sent = client.get("/ops/tasks/", asked)
    assert (sent.status_code, sent["Location"]) == (
        303,
        "/ops/tasks/?q=a-1+state%3Aerror+attempts%3A%3E0",
    )
    response = client.get(sent["Location"])
    assert listed(response) == ["a-1"]
    shown = page(response)
    assert shown.only("#q")["value"] == "a-1 state:error attempts:>0"
    assert shown.only('option[value="error"]').attributes.get("selected") == ""
    assert shown.only("#d-narrow").only('[type="hidden"][name="q"]')["value"] == "a-1"


def test_search_by_known_fields(monkeypatch):
    known = replace(
        registry.workflows["greet"],
        label=lambda data: data["name"][:3].upper() + "-17",
        contact=field("name"),
        value={"amount": field("cents"), "currency": field("money")},
    )
    monkeypatch.setitem(registry.workflows, "greet", known)
    data = {"name": "Ada@Bath.example", "cents": 123_456, "money": "EUR"}
    task = new_task("r-1", data=data)
    new_task("r-2", data={"name": "bob", "cents": 5, "money": "EUR"})
    client = browser(person("ann", "operate", "see_personal"))
    for query in ("ADA-17", "ada-1", "ada@bath.EXAMPLE", f"{task.id}", "value:>1,000", "r-1",
                  "value:1234.56", "contact:ada@bath.example", "value:>=1234.56 after:1h"):  # fmt: skip
        assert listed(client.get("/ops/tasks/", {"q": query})) == ["ADA-17"], query
    new_task("r-3", data={"name": "Jun", "cents": 5000, "money": "JPY"})
    for query, expected in (
        ("value:>4999JPY", ["JUN-17"]),
        ("value:5000jpy", ["JUN-17"]),
        ("value:>5000JPY", []),
        ("value:>1234.55EUR", ["ADA-17"]),
        ("value:>1234.56EUR", []),
        ("value:0.05EUR", ["BOB-17"]),
        ("value:<1EUR", ["BOB-17"]),
    ):
        assert listed(client.get("/ops/tasks/", {"q": query})) == expected, query
    for query, sentence in (
        ("value:>1.5JPY", "JPY has no decimal places"),
        ("value:>1.555", "the amount has 2 decimal places"),
        ("value:>1YENS", "enter an amount or a comparison"),
        ("attempts:>1.5", "enter a number or a comparison"),
    ):
        errors = page(client.get("/ops/tasks/", {"q": query})).only(".errors")
        assert sentence in errors.text, query
    row = page(client.get("/ops/tasks/?q=r-1")).only(f"#row-{task.id}")
    assert "€1,234.56" in row.texts("td")
    assert row.only("[data-contact]").text == "ada@bath.example"


def test_background_tasks_are_hidden_until_requested(client, monkeypatch):
    chore = replace(registry.workflows["greet"], name="chore", background=True)
    known = {"greet": registry.workflows["greet"], "chore": chore}
    monkeypatch.setattr(registry, "workflows", known)
    in_error(new_task("a-main"))
    quiet, failed, late = (new_task(f"a-{n}", workflow="chore") for n in ("quiet", "bad", "late"))
    Task.objects.filter(id=late.id).update(overdue=True)
    in_error(failed)
    left = {"a-main", "a-bad", "a-late"}
    for query, expected in (
        ("", left),
        ("a-", left),
        ("a-quiet", {"a-quiet"}),  # a whole reference, and an id, mean this task
        (f"{quiet.id}", {"a-quiet"}),
        ("with:background", {*left, "a-quiet"}),
        ("a- with:back", {*left, "a-quiet"}),
        ("workflow:chore", {"a-quiet", "a-bad", "a-late"}),
        ("agent:greeter", {*left, "a-quiet"}),
    ):
        response = client.get("/ops/tasks/", {"q": query})
        assert set(listed(response)) == expected, query
        offered = page(response).all("#with-background")
        assert bool(offered) is (":" not in query), query
        assert page(response).only(".ops-total").only("strong").text == str(len(expected))
    offer = page(client.get("/ops/tasks/?q=a-")).only("#with-background")
    assert offer["href"] == "/ops/tasks/?q=a-+with%3Abackground"
    assert set(listed(client.get(offer["href"]))) == {*left, "a-quiet"}


def test_background_link_is_absent_without_background_workflows(client, monkeypatch):
    monkeypatch.setattr(registry, "workflows", {"greet": registry.workflows["greet"]})
    new_task("a-main")
    assert page(client.get("/ops/tasks/")).all("#with-background") == []


def test_after_and_before_filters_use_the_time_of_the_id(client):
    make(2)
    soon = (timezone.now() + timedelta(hours=1)).isoformat()
    for query, count in (
        ("after:1h", 2),
        (f'after:"{soon}"', 0),
        (f"before:{soon}", 2),
        ("before:1h", 0),
    ):
        assert len(listed(client.get("/ops/tasks/", {"q": query}))) == count, query


def views_of(response) -> dict[str, str]:
    """Return the addresses of the views that a page offers, by their names."""
    return {link.text: link["href"] for link in page(response).only(".ops-views").all("a")}


def test_view_is_saved_replaced_shared_and_deleted(client):
    saved = client.post("/ops/views/", {"name": "bad", "query": "state:error"}, follow=True)
    assert page(saved).only("#messages").only(".success")
    assert "bad" in views_of(saved)
    client.post("/ops/views/", {"name": "bad", "query": "state:error step:hello"})
    view = SavedView.objects.get()
    assert (view.query, view.shared) == ("state:error step:hello", False)
    colleague = browser(person("eve", "operate", "share"))
    assert "bad" not in views_of(colleague.get("/ops/tasks/"))
    colleague.post("/ops/views/", {"name": "night", "query": "is:held", "shared": "on"})
    assert "night by eve" in views_of(client.get("/ops/tasks/"))
    assert colleague.post(f"/ops/views/{view.id}/forget/").status_code == 404
    deleted = client.post(f"/ops/views/{view.id}/forget/", follow=True)
    assert page(deleted).only("#messages").only(".success")
    assert "bad" not in views_of(deleted)
    assert SavedView.objects.get().name == "night"


def test_number_of_views_of_a_person_is_limited(client):
    for number in range(MOST_VIEWS + 1):
        saved = client.post("/ops/views/", {"name": f"v{number}", "query": ""}, follow=True)
    assert f"You have {MOST_VIEWS} views" in saved.text
    assert SavedView.objects.count() == MOST_VIEWS
    client.post("/ops/views/", {"name": "v0", "query": "is:held"})  # replaces one
    assert SavedView.objects.get(name="v0").query == "is:held"


def test_shared_views_with_personal_data_require_the_permission(client):
    trusted = browser(person("eve", "operate", "share", "see_personal"))
    for name, query in (
        ("hers", "ada@example.org"),
        ("his", "contact:bob@example.org"),
        ("all", "is:held"),
    ):
        trusted.post("/ops/views/", {"name": name, "query": query, "shared": "on"})
    response = client.get("/ops/tasks/")
    assert "example.org" not in response.text
    assert {name for name in views_of(response) if name.endswith(" by eve")} == {"all by eve"}
    assert "?q=contact%3Abob%40example.org" in views_of(trusted.get("/ops/tasks/"))["his shared"]


def test_own_views_are_shown_before_any_number_of_shared_ones(client):
    busy = browser(person("eve", "operate", "share"))
    for number in range(31):
        busy.post("/ops/views/", {"name": f"!{number}", "query": "is:held", "shared": "on"})
    client.post("/ops/views/", {"name": "mine", "query": "state:error"})
    client.get("/ops/tasks/")  # shows the message
    names = list(views_of(client.get("/ops/tasks/")))
    assert names.index("mine") < names.index("!0 by eve")


def test_sharing_requires_the_permission(client):
    client.post("/ops/views/", {"name": "bad", "query": "state:error", "shared": "on"})
    assert SavedView.objects.get().shared is False


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"name": "", "query": "state:error"}, "Give the view a name."),
        ({"name": "x", "query": "state:nonsense"}, "unknown state"),
        ({"name": "x" * 61, "query": ""}, "at most 60"),
    ],
)
def test_invalid_view_is_not_saved(client, sent, sentence):
    answer = page(client.post("/ops/views/", sent, follow=True))
    assert sentence in answer.only("#messages").only(".error").text
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(
    ("query", "reason"), [("", "tasks"), ("q=state:error", "errors"), ("q=missing", "search")]
)
def test_empty_list_shows_its_reason(client, query, reason):
    shown = page(client.get(f"/ops/tasks/?{query}"))
    assert shown.only("#live").only("[data-empty]")["data-empty"] == reason
