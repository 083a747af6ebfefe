"""The list of tasks as one works with it: pages both ways, rows that stay put, kept views."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from orchestration import registry
from orchestration.api import field
from orchestration.models import SavedView, Step, Task
from orchestration.queries.listing import PAGE
from orchestration.transitions.create import NewTask, create
from tests.engine import in_error, new_task
from tests.operators import browser, operator, person, press, words

ROW = r'data-open href="/ops/tasks/[^"?]+">([^<]+)'
POLL = {"HX-Request": "true"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    return operator()


def make(count, prefix="n"):
    new = [
        NewTask(workflow="greet", reference=f"{prefix}{n:03}", data={"name": "A"})
        for n in range(count)
    ]
    with transaction.atomic():
        return create(new)


def link(text, words_) -> str:
    found = re.search(rf'href="(\?[^"]*)">{words_}<', text)
    return found[1].replace("&amp;", "&") if found else ""


def poll_of(text) -> str:
    return re.findall(r'hx-get="([^"]+)"', text)[0].replace("&amp;", "&")


@pytest.mark.parametrize("query", ["", "q=state:pending", "q=n"])
def test_pages_go_both_ways_and_end_at_both_ends(client, query):
    make(2 * PAGE + 5)

    def page(address):
        return client.get(f"/ops/tasks/{address}").text

    first = page(f"?{query}")
    assert not link(first, "Newer")
    second = page(link(first, "Older"))
    third = page(link(second, "Older"))
    assert not link(third, "Older")
    names = [re.findall(ROW, text) for text in (first, second, third)]
    assert [len(found) for found in names] == [PAGE, PAGE, 5]
    assert sorted(name for found in names for name in found) == [
        f"n{n:03}" for n in range(2 * PAGE + 5)
    ]
    assert re.findall(ROW, page(link(third, "Newer"))) == names[1]
    assert re.findall(ROW, page(link(second, "Newer"))) == names[0]
    assert re.findall(ROW, page(link(second, "Newest"))) == names[0]
    last = page(link(first, "Oldest"))
    assert re.findall(ROW, last) == (names[1] + names[2])[-PAGE:]
    assert not link(last, "Older")
    assert re.findall(ROW, page(link(last, "Newer"))) == (names[0] + names[1])[5 : PAGE + 5]


def test_rows_stay_put_while_somebody_reads_them(client):
    steps = [in_error(new_task(name)) for name in ("one", "two", "three")]
    text = client.get("/ops/tasks/?q=state:error").text
    assert re.findall(ROW, text) == ["three", "two", "one"]
    press(client, steps[1])  # it does not belong to the list any more
    in_error(new_task("four"))  # and this does
    polled = client.get(poll_of(text), headers=POLL).text
    assert re.findall(ROW, polled) == ["three", "two", "one"]
    assert "1 new, 1 no longer matches: show" in " ".join(polled.split())
    assert len(re.findall('class="gone"', polled)) == 1
    assert client.get(poll_of(polled), headers=POLL).status_code == 204
    assert re.findall(ROW, client.get("/ops/tasks/?q=state:error").text) == ["four", "three", "one"]


def test_what_was_on_the_next_page_all_along_is_not_new(client):
    make(PAGE + 3)
    text = client.get("/ops/tasks/?q=state:pending").text
    newest = Task.objects.latest("id")
    Step.objects.filter(task=newest, name="hello")
    Task.objects.filter(id=newest.id).update(state="processing")
    polled = " ".join(client.get(poll_of(text), headers=POLL).text.split())
    assert "1 no longer matches: show" in polled
    assert "new," not in polled


def test_the_form_says_the_same_as_the_box(client):
    in_error(new_task("a-1"))
    asked = {"narrow": "1", "q": "a-1", "state": "error", "step": "", "attempts": ">0", "is": ""}
    sent = client.get("/ops/tasks/", asked)
    assert (sent.status_code, sent["Location"]) == (
        303,
        "/ops/tasks/?q=a-1+state%3Aerror+attempts%3A%3E0",
    )
    text = client.get(sent["Location"]).text
    assert re.findall(ROW, text) == ["a-1"]
    assert 'value="a-1 state:error attempts:&gt;0"' in text
    assert '<option value="error" selected>' in text
    assert '<input type="hidden" name="q" value="a-1">' in text


def test_people_search_by_what_they_know(monkeypatch):
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
        assert re.findall(ROW, client.get("/ops/tasks/", {"q": query}).text) == ["ADA-17"], query
    new_task("r-3", data={"name": "Jun", "cents": 5000, "money": "JPY"})
    for query, found in (
        ("value:>4999JPY", ["JUN-17"]),
        ("value:5000jpy", ["JUN-17"]),
        ("value:>5000JPY", []),
        ("value:>1234.55EUR", ["ADA-17"]),
        ("value:>1234.56EUR", []),
        ("value:0.05EUR", ["BOB-17"]),
    ):
        assert re.findall(ROW, client.get("/ops/tasks/", {"q": query}).text) == found, query
    for query, said in (
        ("value:>1.5JPY", "JPY has no digits after the point"),
        ("value:>1.555", "it has 2 digits after the point"),
        ("value:>1YENS", "an amount or a comparison is wanted"),
        ("attempts:>1.5", "a number or a comparison is wanted"),
    ):
        assert said in words(client.get("/ops/tasks/", {"q": query})), query
    page = words(client.get("/ops/tasks/?q=r-1"))
    assert "1,234.56 EUR" in page
    assert "ada@bath.example" in page


def test_what_only_serves_others_is_left_out_until_it_is_asked_for(client, monkeypatch):
    chore = replace(registry.workflows["greet"], name="chore", background=True)
    known = {"greet": registry.workflows["greet"], "chore": chore}
    monkeypatch.setattr(registry, "workflows", known)
    in_error(new_task("a-main"))
    quiet, failed, late = (new_task(f"a-{n}", workflow="chore") for n in ("quiet", "bad", "late"))
    Task.objects.filter(id=late.id).update(overdue=True)
    in_error(failed)
    left = {"a-main", "a-bad", "a-late"}
    for query, found in (
        ("", left),
        ("a-", left),
        ("a-quiet", {"a-quiet"}),  # all of its reference, and its id: nothing else is meant
        (f"{quiet.id}", {"a-quiet"}),
        ("with:background", {*left, "a-quiet"}),
        ("a- with:back", {*left, "a-quiet"}),
        ("workflow:chore", {"a-quiet", "a-bad", "a-late"}),
        ("agent:greeter", {*left, "a-quiet"}),
    ):
        page = client.get("/ops/tasks/", {"q": query})
        assert set(re.findall(ROW, page.text)) == found, query
        said = "chore , which only serve others." in words(page)
        assert said is (":" not in query), query
        assert f"<strong>{len(found)}</strong> task" in page.text
    shown = re.search(r'id="with-background" href="([^"]+)"', client.get("/ops/tasks/?q=a-").text)
    assert shown
    assert shown[1] == "/ops/tasks/?q=a-+with%3Abackground"
    assert set(re.findall(ROW, client.get(shown[1]).text)) == {*left, "a-quiet"}


def test_without_such_tasks_nothing_is_said_to_be_left_out(client, monkeypatch):
    monkeypatch.setattr(registry, "workflows", {"greet": registry.workflows["greet"]})
    new_task("a-main")
    assert "with-background" not in client.get("/ops/tasks/").text


def test_late_and_early_are_told_by_the_id(client):
    make(2)
    soon = (timezone.now() + timedelta(hours=1)).isoformat()
    for query, count in (
        ("after:1h", 2),
        (f'after:"{soon}"', 0),
        (f"before:{soon}", 2),
        ("before:1h", 0),
    ):
        text = client.get("/ops/tasks/", {"q": query}).text
        assert len(re.findall(ROW, text)) == count, query


def test_a_view_is_kept_replaced_shared_and_forgotten(client):
    saved = client.post("/ops/views/", {"name": "bad", "query": "state:error"}, follow=True)
    assert "The view “bad” was saved." in saved.text
    client.post("/ops/views/", {"name": "bad", "query": "state:error step:hello"})
    view = SavedView.objects.get()
    assert (view.query, view.shared) == ("state:error step:hello", False)
    colleague = browser(person("eve", "operate", "share"))
    assert "hello" not in words(colleague.get("/ops/tasks/")).split("All")[1].split("Filters")[0]
    colleague.post("/ops/views/", {"name": "ours", "query": "is:held", "shared": "on"})
    assert "ours by eve" in words(client.get("/ops/tasks/"))
    assert colleague.post(f"/ops/views/{view.id}/forget/").status_code == 404
    forgotten = client.post(f"/ops/views/{view.id}/forget/", follow=True)
    assert "The view “bad” was deleted." in forgotten.text


def test_shared_views_that_may_name_somebody_are_for_those_who_may_see_personal_data(client):
    trusted = browser(person("eve", "operate", "share", "see_personal"))
    for name, query in (
        ("hers", "ada@example.org"),
        ("his", "contact:bob@example.org"),
        ("all", "is:held"),
    ):
        trusted.post("/ops/views/", {"name": name, "query": query, "shared": "on"})
    seen = client.get("/ops/tasks/").text
    assert "example.org" not in seen
    assert "all by eve" in words(client.get("/ops/tasks/"))
    assert "contact%3Abob%40example.org" in trusted.get("/ops/tasks/").text


def test_only_those_who_may_share_share(client):
    client.post("/ops/views/", {"name": "bad", "query": "state:error", "shared": "on"})
    assert SavedView.objects.get().shared is False


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"name": "", "query": "state:error"}, "Give the view a name."),
        ({"name": "x", "query": "state:nonsense"}, "there is no state of this name"),
        ({"name": "x" * 61, "query": ""}, "at most 60"),
    ],
)
def test_a_view_that_makes_no_sense_is_not_kept(client, sent, said):
    answer = client.post("/ops/views/", sent, follow=True).text
    assert "The view was not saved." in answer
    assert said in answer
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "No task yet."),
        ("q=state:error", "Nothing failed."),
        ("q=nobody-has-this", "No task matches this search."),
    ],
)
def test_an_empty_list_says_what_it_means(client, query, said):
    assert said in words(client.get(f"/ops/tasks/?{query}"))
