"""The filters of the task list: by its address and by the search box."""

import time

import pytest
from django.http import QueryDict

from orchestration.database import clock
from orchestration.models import Hold, Task
from orchestration.models.fields import DatabaseNow
from orchestration.models.hold import HoldCause
from orchestration.transitions.holds import hold
from tests.support.engine import in_error, new_task, run_to_end
from tests.support.page import listed, page

pytestmark = pytest.mark.django_db


@pytest.fixture
def _three(client):
    in_error(new_task("a-bad"))
    run_to_end(new_task("a-done"))
    new_task("b-waits")


@pytest.mark.usefixtures("_three")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"a-bad", "a-done", "b-waits"}),
        ("state=error", {"a-bad"}),
        ("state=processed", {"a-done"}),
        ("workflow=greet", {"a-bad", "a-done", "b-waits"}),
        ("workflow=order", set()),
        ("step=hello", {"a-bad", "b-waits"}),
        ("step=again", set()),
        ("agent=greeter", {"a-bad", "b-waits"}),
        ("agent=payment", set()),
        ("reference=a-", {"a-bad", "a-done"}),
        ("reference=a-done", {"a-done"}),
        ("reference=%25", set()),
        ("state=error&step=hello&reference=a", {"a-bad"}),
        ("q=is:overdue", set()),
        ("alert=123456789", set()),
        ("q=a-bad", {"a-bad"}),
        ("q=a-&state=error", {"a-bad"}),
        ("q=state:error step:hel", {"a-bad"}),
        ("q=error:rejected", {"a-bad"}),
        ("q=error:time", set()),
        ("q=attempts:>0 state:error", {"a-bad"}),
        ("q=attempts:>1", set()),
        ("q=is:retrying", set()),
        ("q=is:held", set()),
        ("q=after:1h", {"a-bad", "a-done", "b-waits"}),
        ("q=before:2020-01-01", set()),
        ("q=value:>0", set()),
        ("q=value:0", {"a-bad", "a-done", "b-waits"}),
        ("q=value:<1", set()),  # none has a value at all
        ("q=incident:987654", set()),
    ],
)
def test_list_is_filtered_by_its_address(client, query, expected):
    assert set(listed(client.get(f"/ops/tasks/?{query}"))) == expected


@pytest.mark.usefixtures("_three")
@pytest.mark.parametrize("seconds", [7200, -7200])
def test_relative_times_use_the_adjusted_clock(client, monkeypatch, seconds):
    clock.measure()
    wrong = time.time() + seconds
    monkeypatch.setattr("time.time", lambda: wrong)
    task = new_task("now")
    names = listed(client.get("/ops/tasks/?q=after:1h"))
    assert set(names) == {"a-bad", "a-done", "b-waits", "now"}, task.id
    assert listed(client.get("/ops/tasks/?q=before:1h")) == []


@pytest.mark.usefixtures("_three")
@pytest.mark.parametrize(
    ("held", "cause", "expected"),
    [
        ("greeter", HoldCause.HAND, {"b-waits"}),
        ("", HoldCause.HAND, {"b-waits"}),
        ("greeter", HoldCause.NO_WORKER, {"b-waits"}),
        ("greeter", HoldCause.BREAKER, set()),  # its breaker is open
        ("payment", HoldCause.HAND, set()),
    ],
)
def test_steps_of_a_held_agent_are_shown_as_held(client, held, cause, expected):
    active = hold(agent=held, actor="olga", reason="they move", cause=cause)
    response = client.get("/ops/tasks/?q=is:held")
    assert set(listed(response)) == expected
    held_texts = page(response).texts(".ops-next")
    assert ["held by olga" in text for text in held_texts] == [True for _ in expected]
    Hold.objects.filter(id=active.id).update(until=DatabaseNow())
    assert listed(client.get("/ops/tasks/?q=is:held")) == []


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "state=nonsense",
            "“state:nonsense”: unknown state; known: error, pending",
        ),
        ("older=nonsense", "does not name a page"),
        ("shown=x", "does not name a page"),
        ("before=nonsense", "such as 2026-01-31"),
        ("alert=x", "enter a number, such as 7"),
        ("reference=%00", "null character"),
        ("q=%00", "null character"),
        ("agent=greter", "did you mean “greeter”?"),
        ("q=stp:hello", "Unknown filter “stp:”; did you mean “step”?"),
        ("q=state:error&state=pending", "is given twice"),
        ("q=state:proc", "the value is ambiguous: “processed” or “processing”"),
        ("q=state:", "“state:” has no value; the value is ambiguous: “error” or “pending”"),
        ("q=state: error", "“state:” has no value"),
        ("q=workflow:%22%22", "“workflow:” has no value; the value is ambiguous: “"),
        ("q=attempts:", "“attempts:” has no value; enter a number or a comparison"),
        ("q=error:", "“error:” has no value; enter the beginning of the text"),
        ("q=contact:", "permission to see personal data"),
        ("q=stp:", "Unknown filter “stp:”; did you mean “step”?"),
        ("q=attempts:many", "such as >2"),
        ("q=value:x", "such as >100"),
        ("q=%22a", "quotation mark"),
        ("q=" + "a" * 501, "at most 500"),
    ],
)
def test_invalid_filter_is_reported(client, query, sentence):
    response = client.get(f"/ops/tasks/?{query}")
    assert response.status_code == 400
    assert sentence in page(response).only(".errors").text
    typed = QueryDict(query).get("q", "")
    if len(typed) > 1 and "\0" not in typed:
        assert page(response).only("#q")["value"] == typed  # to be corrected, not typed again


@pytest.mark.parametrize(
    ("word", "offered"),
    [
        ("22.40", ["value:22.40"]),
        ("€22.40", ["value:22.40"]),
        ("22,40", ["value:22.40"]),
        ("1,234.50€", ["value:1234.50"]),
        ("€5", ["value:5"]),
        ("2240", []),
        ("1,234", []),
        ("22.401", []),
    ],
)
def test_amount_is_offered_as_a_value(client, word, offered):
    new_task("a")
    Task.objects.update(value=2240, currency="EUR")
    shown = page(client.get("/ops/tasks/", {"q": word}))
    assert shown.texts("a[data-meant]") == offered
    for link in shown.all("a[data-meant]"):
        assert bool(listed(client.get(link["href"]))) == ("22.40" in offered[0])


def test_unknown_condition_is_named_as_in_the_form(client):
    response = client.get("/ops/tasks/?q=is:late")
    assert "unknown condition" in page(response).only(".errors").text


def test_due_of_a_task_in_error_is_shown_as_on_its_page(client):
    task = in_error(new_task("bad")).task
    shown = page(client.get("/ops/tasks/?q=columns:due")).only(f"#row-{task.id}")
    (due,) = [time["datetime"] for time in shown.all("time[data-due]")]
    seen = page(client.get(f"/ops/tasks/{task.id}/"))
    assert due in [time["datetime"] for time in seen.all("time[data-due]")]


@pytest.mark.usefixtures("_three")
def test_tasks_of_a_workflow_that_is_gone_are_listed(client):
    Task.objects.filter(reference="a-bad").update(workflow="gone")
    for query in ("q=workflow:gone", "workflow=gone"):
        response = client.get(f"/ops/tasks/?{query}")
        assert response.status_code == 200
        assert listed(response) == ["a-bad"]
    assert client.get("/ops/tasks/?q=workflow:never").status_code == 400
