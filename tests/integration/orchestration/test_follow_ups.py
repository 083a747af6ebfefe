"""A task that is about another one: both name each other wherever operators look."""

import csv

import pytest
from django.db import connection
from django.urls import reverse

from orchestration import registry, submission
from orchestration.api import Posting, Step, TaskHandle, Workflow, field, submit, submit_many
from orchestration.assurance.retention import lines, removal
from orchestration.console.queries.task import MOST_FOLLOW_UPS, task_detail
from orchestration.models import Submission, Task
from orchestration.operations.undo_preview import undo_preview
from orchestration.transitions.undo import undo
from tests.support.engine import new_task, run_to_end
from tests.support.operations import drafted
from tests.support.operators import browser, person
from tests.support.page import page
from tests.support.plans import plan

pytestmark = pytest.mark.django_db
ORDER = TaskHandle("greet", "42")


@pytest.fixture(autouse=True)
def returns(monkeypatch):
    """Declare the workflow of returns, which are worth something."""
    take = Step(name="take", agent="greeter", action="greet", request={"to": "home"}, undo=None)
    value = {"amount": field("cents"), "currency": "EUR"}
    monkeypatch.setitem(
        registry.workflows, "return", Workflow(name="return", steps=[take], value=value)
    )


@pytest.fixture
def client():
    return browser(person("ann", "operate", "undo", "start", "see_personal"))


def follow_up(reference="r-1", about=ORDER, cents=500):
    """Submit a return, and return its task."""
    submit("return", reference=reference, data={"cents": cents}, about=about)
    submission.take(10)
    return Task.named("return", reference)


def shown(client, task):
    return page(client.get(reverse("ops:task", args=[task.id])))


def test_task_names_the_one_that_it_is_about():
    order = new_task("42")
    back = follow_up()
    assert (back.about_workflow, back.about_reference) == ("greet", "42")
    assert list(order.follow_ups) == [back]
    assert list(back.follow_ups) == []


def test_a_batch_has_tasks_with_and_without():
    about = [None, ORDER, TaskHandle("return", "r-0")]
    submit_many(
        [
            Posting(workflow="return", reference=f"r-{n}", data={"cents": 1}, about=other)
            for n, other in enumerate(about)
        ]
    )
    submission.take(10)
    named = Task.objects.order_by("reference").values_list("about_workflow", "about_reference")
    assert list(named) == [("", ""), ("greet", "42"), ("return", "r-0")]


@pytest.mark.parametrize(
    ("about", "error", "text"),
    [
        (TaskHandle("gret", "42"), LookupError, "'gret'"),
        (("greet", "42"), TypeError, "TaskHandle"),
        ("42", TypeError, "TaskHandle"),
        (TaskHandle("greet", ""), ValueError, "printable"),
        (TaskHandle("greet", "4" * 101), ValueError, "printable"),
        (TaskHandle("greet", 42), TypeError, "str"),
        (TaskHandle("return", "r-1"), ValueError, "itself"),
    ],
)
def test_what_no_task_can_be_about_is_refused_before_anything_is_posted(about, error, text):
    with pytest.raises(error, match=text):
        submit("return", reference="r-1", data={"cents": 1}, about=about)
    assert not Submission.objects.exists()


def test_first_posting_of_a_reference_says_what_it_is_about():
    follow_up()
    back = follow_up(about=TaskHandle("greet", "43"))
    assert back.about_reference == "42"
    assert not Submission.objects.exists()


def test_application_that_calls_the_function_as_before_posts_what_is_about_nothing():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT orchestration_submit(ARRAY['return'], ARRAY['r-1'], ARRAY['{\"cents\": 1}'::jsonb],"
            " ARRAY[''], ARRAY[''], ARRAY[0]::smallint[], ARRAY[''])"
        )
    submission.take(10)
    assert Task.named("return", "r-1").about_reference == ""


def test_pages_lead_from_each_to_the_other(client):
    order, back = new_task("42"), follow_up()
    (row,) = shown(client, order).section("h-follow-ups").all("[data-follow-up]")
    assert row.only("a")["href"] == reverse("ops:task", args=[back.id])
    assert "5.00" in row.text
    (about,) = shown(client, back).all("[data-about]")
    assert about.only("a")["href"] == reverse("ops:task", args=[order.id])
    assert not shown(client, back).all("#h-follow-ups")
    assert not shown(client, order).all("[data-about]")


def test_page_names_a_task_that_is_not_there(client):
    (about,) = shown(client, follow_up()).all("[data-about]")
    assert "42" in about.text
    assert not about.all("a")


def test_follow_ups_cost_a_page_the_same_however_many_there_are(
    client, django_assert_max_num_queries
):
    order = new_task("42")
    for number in range(MOST_FOLLOW_UPS + 1):
        follow_up(f"r-{number}")
    with django_assert_max_num_queries(17):
        detail = task_detail(order.id)
    assert len(detail.follow_ups) == MOST_FOLLOW_UPS + 1
    assert len(shown(client, order).all("[data-follow-up]")) == MOST_FOLLOW_UPS
    assert "about:42" in shown(client, order).section("h-follow-ups").all("a")[-1]["href"]


def test_preview_of_an_undo_names_follow_ups_that_stand(client):
    order = new_task("42")
    run_to_end(order)
    back, gone = follow_up(), follow_up("r-2")
    assert undo(gone.id, actor="ann", reason="by mistake") is None
    (named,) = undo_preview(order.id)["follow_ups"]
    assert (named["reference"], named["value"], named["currency"]) == ("r-1", 500, "EUR")
    (strip,) = page(client.get(reverse("ops:undo", args=[order.id]))).all("[data-follow-ups]")
    assert [link["href"] for link in strip.all("a")] == [reverse("ops:task", args=[back.id])]
    assert undo_preview(back.id)["follow_ups"] == []


def test_preview_says_nothing_where_there_is_none(client):
    order = new_task("42")
    follow_up(about=TaskHandle("return", "42"))  # another task of the same reference
    assert undo_preview(order.id)["follow_ups"] == []
    assert not page(client.get(reverse("ops:undo", args=[order.id]))).all("[data-follow-ups]")


def test_dry_run_of_many_undos_counts_the_tasks_with_follow_ups_that_stand():
    followed, undone, alone = (new_task(name) for name in ("42", "43", "44"))
    follow_up()
    gone = follow_up("r-2", about=TaskHandle("greet", "43"))
    assert undo(gone.id, actor="ann", reason="by mistake") is None
    ann = person("ann", "operate", "undo", "bulk", "see_personal")
    warned = {}
    for tasks in ([followed, undone, alone], [undone, alone]):
        draft = drafted(tasks, "undo", actor=ann)
        address = reverse("ops:operation", args=[draft.id])
        strips = page(browser(ann).get(address)).all("[data-followed]")
        warned[draft.preview["followed"]] = [strip["data-followed"] for strip in strips]
    assert warned == {1: ["1"], 0: []}
    assert drafted([followed], "hold").preview["followed"] == 0


def test_search_and_export_know_what_a_task_is_about(client):
    new_task("42")
    follow_up()
    follow_up("r-2", about=TaskHandle("greet", "7"))
    narrowing = "q=about:42+columns:task,about"
    export = client.post("/ops/export/tasks/", {"narrowing": narrowing, "format": "csv"})
    lines = b"".join(export.streaming_content).decode("utf-8-sig").splitlines()
    (row,) = csv.DictReader(lines)
    assert (row["task"], row["about_workflow"], row["about"]) == ("r-1", "greet", "42")
    listed = page(client.get("/ops/tasks/", {"q": "-about:42 columns:task,about"}))
    assert "r-2" in listed.text
    assert "r-1" not in listed.text


def test_follow_ups_are_found_by_their_index():
    for number in range(300):
        new_task(f"t-{number}")
    order, _ = new_task("42"), follow_up()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE orchestration_task")
    query, parameters = order.follow_ups.query.sql_with_params()
    assert "task_by_about" in {name for _, name in plan(query, parameters)}


def test_task_is_removed_by_itself_and_comes_back_with_what_it_was_about(client):
    order, back = new_task("42"), follow_up()
    run_to_end(order)
    run_to_end(back)
    (line,) = [text for _, text in lines.write([str(back.id)], lines.shape())]
    assert '"about_reference": "42"' in line
    removal.erase({str(order.id): ("greet", "42")})
    (about,) = shown(client, back).all("[data-about]")
    assert not about.all("a")


def test_task_started_again_by_hand_is_about_the_same(client):
    back = follow_up()
    form = page(client.get(reverse("ops:again", args=[back.id])))
    reference = form.only('input[name="reference"]')["value"]
    sent = {"reference": reference, "reason": "lost"}
    client.post(reverse("ops:again", args=[back.id]), sent)
    submission.take(10)
    assert Task.named("return", reference).about_reference == "42"


def test_kit_submits_follow_ups(run):
    order = run.submit("greet", {"name": "Ada"})
    back = run.submit("return", {"cents": 1}, about=order.handle)
    run.go()
    assert back.state == "processed"
    assert Task.named("return", back.reference).about_reference == order.reference
