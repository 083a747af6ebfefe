"""Times and numbers that Postgres can hold and Python cannot, or the reverse: no failed page, ever."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from orchestration import api, registry, submission, task_requests
from orchestration.applications.by_hand import new_reference
from orchestration.database import sql
from orchestration.models import Step, Submission, Task, TaskRequest
from orchestration.payloads.placeholders import field
from orchestration.workflows.workflow import LARGEST_VALUE, Refused
from tests.support.engine import in_error, new_task
from tests.support.odd_times import ODD_TIMES
from tests.support.operators import browser, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def later(monkeypatch):
    """Have "greet" begin at a time of its input, and have a value."""
    greet = replace(
        registry.workflows["greet"],
        run_after=field("at"),
        value={"amount": field("amount"), "currency": "EUR"},
    )
    monkeypatch.setitem(registry.workflows, "greet", greet)


@pytest.fixture
def operator():
    return browser(person("ann", "operate", "requeue", "see_personal", "undo"))


def data(**fields):
    return {"name": "Ada", "at": "2031-01-01T00:00:00+00:00", "amount": 100, **fields}


BAD = (
    {"at": "9999-12-31T23:59:59+00:00"},
    {"at": "9000-01-01T00:00:00+00:00"},
    {"at": "0001-01-01T00:00:00+00:00"},
    {"at": "2031-01-01T00:00:00"},
    {"at": "tomorrow"},
    {"amount": 2**63},
    {"amount": -LARGEST_VALUE},
    {"amount": 1.5},
    {"amount": "100"},
)


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_what_can_never_be_a_task_is_refused_at_once(later, bad):
    with pytest.raises(Refused):
        api.submit("greet", reference="1", data=data(**bad))
    assert not Submission.objects.exists()
    # posted by SQL it is set aside, and tried no more, beside others that are taken
    for reference, fields in (("bad", bad), ("good", {})):
        Submission.objects.create(workflow="greet", reference=reference, data=data(**fields))
    assert submission.take(10) == 2
    assert Task.objects.get().reference == "good"
    assert Submission.objects.get().refused_at


@pytest.mark.parametrize("offset", ["+16:00", "-23:59", "+23:59:59"])
def test_any_offset_is_taken(later, offset):
    text = f"2031-01-01T00:00:00{offset}"
    api.submit("greet", reference="1", data=data(at=text))
    assert submission.take(10) == 1
    assert Step.objects.get(name="hello").run_after == datetime.fromisoformat(text)


@pytest.mark.parametrize("reference", ["", "a\nb", "a\u202eb", "a\0b", "x" * 101])
def test_reference_of_other_than_printable_characters_is_refused(reference):
    with pytest.raises(ValueError, match="printable"):
        api.submit("greet", reference=reference, data={"name": "Ada"})


@pytest.mark.parametrize("name", ["wait", "patience"])
@pytest.mark.parametrize("seconds", [3e11, -1, float("nan"), float("inf"), "5", None])
def test_wait_beyond_ten_years_is_refused(name, seconds):
    with pytest.raises(ValueError, match=name):
        api.Amendment(**{name: seconds})
    step = in_error(new_task())
    if isinstance(seconds, float) and not -1e300 < seconds < 1e300:
        return  # no JSON has it
    TaskRequest.objects.create(
        request=uuid4(), workflow="greet", reference=step.task.reference, what="resubmit",
        step=step.name, attempt=step.attempt, actor="me", because="why",
        amendment={"request": {"to": "Eve"}, "data": {}, name: seconds},
    )  # fmt: skip
    assert task_requests.take(10).done == 1
    assert TaskRequest.objects.get().refusal == "INVALID"
    step.refresh_from_db()
    assert step.process_state == "error"


@pytest.mark.parametrize("odd", ODD_TIMES)
def test_pages_show_times_beyond_pythons_calendar(operator, odd):
    waiting, failed = new_task(), in_error(new_task())
    columns = {
        "step": ("dispatched_at", "ended_at", "failed_at", "resolve_by"),
        "task": ("created_at", "complete_by"),
    }
    for table, names in columns.items():
        new = ", ".join(f"{name} = %(odd)s" for name in names)
        where = "id = %(step)s" if table == "step" else "id = %(task)s"
        ids = {"step": failed.id, "task": str(failed.task_id)}
        sql.run(f"UPDATE orchestration_{table} SET {new} WHERE {where}", {"odd": odd, **ids})
    sql.run("UPDATE orchestration_step SET run_after = %(odd)s"
            " WHERE task_id = %(task)s AND process_state = 'pending'",
            {"odd": odd, "task": str(waiting.id)})  # fmt: skip
    sql.run("INSERT INTO orchestration_event (task_id, kind, actor, reason, detail, at)"
            " VALUES (%(task)s, 'resubmitted', 'ann', 'why', '{}', %(odd)s)",
            {"odd": odd, "task": str(failed.task_id)})  # fmt: skip
    lists = ("", "tasks/", "tasks/?q=state:error", "audit/", "incidents/", "agents/", "system/")
    pages = [*lists, *(f"tasks/{task.id}/" for task in (waiting, failed.task))]
    answers = {address: operator.get(f"/ops/{address}").status_code for address in pages}
    assert set(answers.values()) == {200}, answers
    for task in (waiting, failed.task):
        call_command("tasks", "show", str(task.id))
    call_command("tasks", "list")


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_entry_by_hand_that_can_never_be_a_task_is_refused_with_a_sentence(later, bad):
    client = browser(person("ann", "operate", "start", "see_personal"))
    address = reverse("ops:start", args=["greet"])
    form = {"reference": new_reference(), "reason": "to see", "input-name": '"Ada"'}
    entered = data(**bad)
    others = json.dumps({"at": entered["at"]})
    form |= {"input-amount": json.dumps(entered["amount"]), "input-$others": others}
    answer = client.post(address, form)
    assert answer.status_code == 422
    assert (
        "its run_after" in answer.text
        or "input-amount_error" in answer.text
        or "its value" in answer.text
    )
    assert not Submission.objects.exists()


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_input_that_a_task_had_before_the_bounds_is_not_started_again(later, bad):
    client = browser(person("ann", "operate", "start", "see_personal"))
    task = new_task(data=data())
    Task.objects.update(data=data(**bad))
    address = reverse("ops:again", args=[task.id])
    answer = client.post(address, {"reference": new_reference(again=True), "reason": "to see"})
    assert answer.status_code == 422
    assert "does not fit its workflow" in answer.text
    assert not Submission.objects.exists()


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "10000-01-01", "infinity"])
def test_odd_days_of_filters_are_answered(operator, day):
    new_task()
    for query in (f"audit/?after={day}", f"audit/?before={day}", f"tasks/?q=created:{day}",
                  f"tasks/?q=after:{day}", f"tasks/?q=before:{day}"):  # fmt: skip
        assert operator.get(f"/ops/{query}").status_code < 500, query


@pytest.mark.parametrize(
    "moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9999-12-31", "0001-01-01"]
)
def test_odd_moments_of_an_archive_are_answered(tmp_path, moment):
    new_task()
    with suppress(CommandError):
        call_command("archive", "--before", moment, str(tmp_path))
    assert Task.objects.count() == 1
