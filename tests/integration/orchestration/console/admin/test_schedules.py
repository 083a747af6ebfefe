"""Schedules in the admin: what is refused, what is planned anew, and what cannot be deleted."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from orchestration import api, registry
from orchestration.database import clock
from orchestration.models import Schedule
from orchestration.schedules import submitting
from tests.support.page import page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_schedules")]
ADD = reverse("admin:orchestration_schedule_add")
VALID = {
    "name": "nightly", "workflow": "greet", "data": json.dumps({"name": "Ada"}), "due_field": "",
    "cron": "0 2 * * *", "zone": "Europe/Berlin", "every": "", "start_at_0": "", "start_at_1": "",
    "jitter": "0", "overlap": "skip", "catch_up": "one", "catch_up_within": "86400", "priority": "0",
    "fairness_key": "", "reply_to": "", "reason": "wanted",
}  # fmt: skip


def change(row, view="change"):
    return reverse(f"admin:orchestration_schedule_{view}", args=[row.pk])


def test_schedule_is_added_with_a_reason_and_its_first_due_time(client):
    assert client.post(ADD, VALID).status_code == 302
    row = Schedule.objects.get()
    assert not row.declared
    assert row.timing.local(row.due_at).hour == 2
    assert row.look_at == row.due_at > clock.database_now()
    assert row.history.get().history_change_reason == "wanted"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"cron": "0 2 * *"}, "cron"),
        ({"cron": ""}, ""),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"zone": "Mars"}, "zone"),
        ({"workflow": "grete"}, "workflow"),
        ({"data": "{}"}, ""),
        ({"data": "[1]"}, "data"),
        ({"data": "{"}, "data"),
        ({"every": "60"}, ""),
        ({"every": "99999999999"}, "every"),
        ({"jitter": "86401"}, ""),
        ({"jitter": "nan"}, "jitter"),
        ({"catch_up": "all"}, ""),
        ({"catch_up_within": "1"}, ""),
        ({"name": "a/b"}, "name"),
        ({"priority": "99999"}, "priority"),
    ],
    ids=str,
)
def test_what_cannot_be_submitted_is_refused_with_a_sentence(client, wrong, field):
    answer = client.post(ADD, {**VALID, **wrong})
    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert set(errors) == {field or "__all__"}
    assert not Schedule.objects.exists()


def test_change_is_planned_anew_and_the_old_time_does_not_count(client):
    client.post(ADD, VALID)
    row = Schedule.objects.get()
    yesterday = row.due_at - timedelta(days=1)
    Schedule.objects.update(due_at=yesterday, look_at=yesterday)  # it is due
    assert client.post(change(row), {**VALID, "cron": "30 4 * * *"}).status_code == 302
    now = clock.database_now()
    assert submitting.submit(now, [row.id]) == (0, 0)
    row.refresh_from_db()
    assert row.due_at > now
    assert (row.timing.local(row.due_at).hour, row.timing.local(row.due_at).minute) == (4, 30)
    assert row.name == "nightly"


def test_change_of_what_is_not_its_time_keeps_what_the_engine_wrote(client):
    client.post(ADD, VALID)
    row = Schedule.objects.get()
    submitting.submit(row.due_at, [row.id])
    before = Schedule.objects.values("due_at", "look_at", "last_reference", "submitted").get()
    assert client.post(change(row), {**VALID, "priority": "5"}).status_code == 302
    after = Schedule.objects.values("due_at", "look_at", "last_reference", "submitted").get()
    assert before == after
    assert Schedule.objects.get().priority == 5


def test_declared_schedule_is_not_deleted_while_code_declares_it(client, monkeypatch):
    client.post(ADD, VALID)
    row = Schedule.objects.get()
    Schedule.objects.update(declared=True)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    declared = api.Schedule(name="nightly", workflow="greet", every=60, start_at=start)
    with monkeypatch.context() as patched:
        patched.setitem(registry.schedules, "nightly", declared)
        assert client.post(change(row, "delete"), {"post": "yes"}).status_code == 403
    assert client.post(change(row, "delete"), {"post": "yes"}).status_code == 302
    assert not Schedule.objects.exists()


def test_list_and_history_are_shown(client):
    client.post(ADD, VALID)
    row = Schedule.objects.get()
    listed = page(client.get(reverse("admin:orchestration_schedule_changelist"), {"q": "night"}))
    assert listed.texts(".field-cron") == ["0 2 * * *"]
    assert "wanted" in page(client.get(change(row, "history"))).text


def test_each_input_of_the_start_has_a_name(client):
    shown = page(client.get(ADD))
    for part in ("date", "time"):
        name = f"start_at_{('date', 'time').index(part)}"
        assert shown.only(f'input[name="{name}"]')["aria-label"] == f"Start at, {part}"
