"""Exports: the rows of each list as a file, safe, by right, and in the history."""

import csv
import json
from urllib.parse import urlencode

import pytest
from django.db import transaction
from django.db.utils import DatabaseError
from django.http import QueryDict

from orchestration.console.queries import exports, task_export
from orchestration.console.queries.task_columns import COLUMNS
from orchestration.console.views.exports import LISTS
from orchestration.models import Export, Incident, Policy, Step, Submission
from orchestration.models.fields import DatabaseNow
from orchestration.people.redaction import HIDDEN
from orchestration.transitions.holds import hold
from tests.support.engine import in_error, new_task
from tests.support.operations import confirmed, drafted
from tests.support.operators import browser, person
from tests.support.page import page

pytestmark = pytest.mark.django_db


SEER = ("operate", "see_personal", "resubmit", "bulk", "hold")


@pytest.fixture
def seer():
    return browser(person("sue", *SEER))


def export(client, query, form):
    return sent(client, "tasks", form, q=query)


def sent(client, name, form, /, **narrowing):
    form_data = {"narrowing": urlencode(narrowing), "format": form}
    return client.post(f"/ops/export/{name}/", form_data)


def body(response) -> str:
    return b"".join(response.streaming_content).decode("utf-8-sig")


@pytest.mark.usefixtures("three")
def test_export_has_the_columns_and_order_of_the_list(monkeypatch):
    monkeypatch.setattr(task_export, "CHUNK", 2)
    viewer = browser(person("vic", "operate", "see_personal"))
    query = "state:pending sort:-value columns:task,contact,value"
    file = export(viewer, query, "csv")
    rows = list(csv.DictReader(body(file).splitlines()))
    assert [(row["task"], row["value"], row["contact"]) for row in rows] == [
        ("b-20", "20.00", "b-20@x.example"),
        ("c-9", "9.00", "c-9@x.example"),
        ("a-5", "5.00", "a-5@x.example"),
    ]
    assert "attachment" in file["Content-Disposition"]
    records = json.loads(body(export(viewer, query, "json")))
    assert [record["task"] for record in records] == ["b-20", "c-9", "a-5"]
    assert {record["currency"] for record in records} == {"EUR"}


@pytest.mark.usefixtures("three")
def test_export_is_in_the_history_before_its_first_row(client):
    file = export(client, "b- sort:value", "json")
    recorded = Export.objects.get()
    assert (recorded.actor, recorded.query, recorded.rows) == ("ann", "b- sort:value", 1)
    assert recorded.personal is False
    assert len(json.loads(body(file))) == 1
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


@pytest.mark.usefixtures("own_schedules")
def test_empty_export_has_its_head(client):
    assert body(export(client, "nothing columns:task,value", "csv")) == "id,task,value,currency\r\n"
    number = confirmed([new_task()], "hold", actor="ann").id
    for name in LISTS:
        narrowing = {
            "items": {"operation": number, "state": "fixed"},
            "tasks": {"q": "nothing"},
            "incidents": {"state": "resolved"},
            "audit": {"actor": "nothing"},
        }
        asked = narrowing.get(name, {"actor": "nothing", "name": "nothing"})
        assert json.loads(body(sent(client, name, "json", **asked))) == []
        (head,) = body(sent(client, name, "csv", **asked)).splitlines()
        assert head.split(",") == Export.objects.latest("id").columns.split(",")


def test_every_column_of_tasks_has_its_fields(seer):
    new_task()
    columns = ",".join(task_export.FIELDS)
    assert set(task_export.FIELDS) == set(COLUMNS)
    assert len(records(seer, "tasks", q=f"columns:{columns}")) == 1


def test_export_stops_at_its_most(client, monkeypatch):
    monkeypatch.setattr(exports, "MOST", 3)
    monkeypatch.setattr(task_export, "CHUNK", 2)
    for number in range(5):
        new_task(f"r-{number}")
    assert len(json.loads(body(export(client, "", "json")))) == 3
    assert Export.objects.get().rows == 3


def test_export_requires_an_operator_and_a_search_that_is_understood(client):
    assert browser(person("eve")).post("/ops/export/tasks/", {"format": "csv"}).status_code == 403
    assert client.get("/ops/export/tasks/").status_code == 405
    for query, form in (("stp:x", "csv"), ("", "xlsx")):
        assert export(client, query, form).status_code == 303
    assert not Export.objects.exists()


# --- the other lists -------------------------------------------------------------------------------
def records(client, name, **narrowing):
    """Return what an export has as JSON; the same rows are in its CSV."""
    exported = json.loads(body(sent(client, name, "json", **narrowing)))
    recorded = Export.objects.latest("id").columns.split(",")
    assert [list(row) for row in exported] == [recorded] * len(exported)
    lines = list(csv.DictReader(body(sent(client, name, "csv", **narrowing)).split("\r\n")))
    assert [list(line) for line in lines] == [list(row) for row in exported]
    return exported


def test_incidents_are_exported_as_they_are_narrowed(client, seer, monkeypatch):
    monkeypatch.setattr(exports, "CHUNK", 1)
    steps = [in_error(new_task(name)) for name in ("bad-1", "bad-2")]
    Incident.objects.filter(id=steps[0].incident_id).update(
        sample="Ada Lovelace is unknown", at_risk={"EUR": 1250}
    )
    (known,) = {step.incident_id for step in steps}
    other = Incident.objects.get(id=known)
    other.pk, other.fingerprint, other.step = None, "another", "again"
    other.save()
    assert [row["id"] for row in records(client, "incidents")] == [other.pk, known]
    (row,) = records(seer, "incidents", step="hello")
    assert (row["agent"], row["message"]) == ("greeter", "Ada Lovelace is unknown")
    assert row["at_risk"] == {"EUR": "12.50"}
    (line,) = csv.DictReader(body(sent(seer, "incidents", "csv", step="hello")).split("\r\n"))
    assert json.loads(line["at_risk"]) == row["at_risk"]
    assert records(client, "incidents", step="hello")[0]["message"] == HIDDEN
    assert records(client, "incidents", state="resolved") == []
    assert sent(client, "incidents", "csv", state="nonsense").status_code == 303
    assert Export.objects.filter(what="incidents", query="step=hello", rows=1).count() == 5


def test_operations_and_their_items_are_exported(client, seer, monkeypatch):
    monkeypatch.setattr(exports, "CHUNK", 1)
    tasks = [new_task(f"r-{number}") for number in range(3)]
    drafted(tasks, "hold", actor="ann")
    assert records(seer, "operations") == []  # a dry run is none yet
    operation = confirmed(tasks, "hold", actor="ann")
    (row,) = records(seer, "operations", act="hold")
    assert (row["action"], row["items"], row["by"]) == ("hold", 3, "ann")
    assert row["reason"] == operation.reason
    assert records(client, "operations")[0]["reason"] == HIDDEN
    assert records(client, "operations", actor="bob") == []
    items = records(client, "items", operation=operation.id)
    assert [row["task"] for row in items] == ["r-2", "r-1", "r-0"]
    assert records(client, "items", operation=operation.id, state="fixed") == []
    for number in ("", "x", "-1", "9" * 5000, operation.id + 1):
        for form in ("csv", "xlsx"):
            assert sent(client, "items", form, operation=number).status_code == 404
    assert sent(client, "items", "csv").status_code == 404


def test_audit_is_exported_with_reasons_by_right(client, seer, monkeypatch):
    monkeypatch.setattr(exports, "CHUNK", 2)
    for agent in ("greeter", "payment", "shipping"):
        hold(agent=agent, actor="olga", reason="Ada Lovelace asked")
    acts = records(seer, "audit", actor="olga")
    assert [row["subject"] for row in acts] == ["agent shipping", "agent payment", "agent greeter"]
    assert {row["reason"] for row in acts} == {"Ada Lovelace asked"}
    assert {row["reason"] for row in records(client, "audit", actor="olga")} == {HIDDEN}
    assert sent(client, "audit", "csv", actr="olga").status_code == 303  # as its page refuses it
    policy = Policy.objects.get(agent="greeter")
    policy.window += 1
    policy._history_user = person("max")
    policy.save()
    (change,) = records(seer, "audit", kind="policy")[0]["changes"]
    assert change["new"] == str(policy.window)


def test_dead_letters_are_exported_by_kind(client, seer, monkeypatch):
    monkeypatch.setattr(exports, "CHUNK", 2)
    for number in range(3):
        Submission.objects.create(
            workflow="unknown", reference=f"r-{number}", data={"name": "Ada Lovelace"}
        )
    Submission.objects.update(refused_at=DatabaseNow(), reason="Ada Lovelace is unknown")
    letters = records(seer, "dead-letters", kind="submission")
    assert [row["subject"] for row in letters] == ["r-2", "r-1", "r-0"]
    assert letters[0]["content"] == {"name": "Ada Lovelace"}
    assert "Lovelace" not in str(records(client, "dead-letters"))
    assert records(client, "dead-letters", kind="status") == []


@pytest.mark.parametrize("name", LISTS)
def test_every_list_can_be_exported_from_its_page_and_by_operators_only(client, name):
    operation = confirmed([new_task()], "hold", actor="olga")
    narrowing = {"operation": operation.id} if name == "items" else {}
    address = LISTS[name][1](QueryDict(urlencode(narrowing)))
    form = page(client.get(address)).only(f'form[action="/ops/export/{name}/"]')
    assert form.only('[name="narrowing"]')
    form_data = {"narrowing": urlencode(narrowing), "format": "json"}
    assert json.loads(body(client.post(form["action"], form_data))) is not None
    assert browser(person("eve")).post(form["action"], form_data).status_code == 403
    assert client.post(form["action"], form_data | {"format": "xlsx"}).status_code == 303
    assert Export.objects.count() == 1


def test_unknown_list_has_no_export(client):
    assert sent(client, "nothing", "csv").status_code == 404
