"""Actions in place: htmx gets the changed part and the counts around it; a plain form gets a page."""

import re

import pytest
from django.urls import reverse

from orchestration.incidents import aggregation
from orchestration.models import Event, Hold, Step
from tests.support.engine import in_error, new_task
from tests.support.operators import browser, operator, person, press
from tests.support.page import POLL as HTMX
from tests.support.page import page, query_count

pytestmark = pytest.mark.django_db
WHY = {"reason": "it is repaired"}
TABLES = ["overview", "tasks", "incident"]


@pytest.fixture
def client():
    return browser(person("ann", "operate", "see_personal", "resubmit", "hold", "acknowledge"))


@pytest.fixture
def step():
    made = in_error(new_task("t-1"))
    aggregation.aggregate("supervisor-1")
    return Step.objects.get(id=made.id)


def query(step, table):
    return f"?in={table}" + (f"&incident={step.incident_id}" if table == "incident" else "")


def address(step, table, name="resubmit"):
    return reverse(f"ops:{name}", args=[step.id]) + query(step, table)


def send(client, step, table, **fields):
    data = {"attempt": step.attempt, **WHY, **fields}
    return client.post(address(step, table), data, headers=HTMX, follow=True)


def row_of(response, step, table):
    """Return the row of a step's task, in a page or alone."""
    name = {
        "overview": f"failed-{step.id}",
        "tasks": f"row-{step.task_id}",
        "incident": f"hit-{step.id}",
    }
    return page(response).only(f"tbody#{name[table]}")


def written(response, step, table):
    """Return a row's HTML without ages, which count on, and the focus that htmx sets."""
    row = row_of(response, step, table)
    text = response.text.split(f'<tbody id="{row["id"]}"')[1].split("</tbody>")[0]
    return " ".join(re.sub(r">[^<]*</time>", "></time>", text).replace(" autofocus", "").split())


def page_with(client, step, table):
    path = {
        "overview": "/ops/",
        "tasks": "/ops/tasks/",
        "incident": reverse("ops:incident", args=[step.incident_id]),
    }
    return client.get(path[table])


@pytest.mark.parametrize("table", TABLES)
class TestRow:
    def test_row_alone_equals_the_row_of_its_page(self, client, step, table):
        on_page = page_with(client, step, table)
        alone = client.get(address(step, table, "row"), headers=HTMX)
        assert page(alone).all("html") == []
        (link,) = row_of(on_page, step, table).all("[data-open-act]")
        assert link["hx-get"] == address(step, table)
        assert written(alone, step, table) == written(on_page, step, table)
        assert "HX-Request" in alone["Vary"]

    def test_form_opens_in_the_row(self, client, step, table):
        answer = client.get(address(step, table), headers=HTMX)
        row = row_of(answer, step, table)
        assert answer.status_code == 200
        assert row.only('[name="reason"]')
        assert row.only('[name="attempt"]')["value"] == str(step.attempt)
        step.refresh_from_db()
        assert step.process_state == "error"

    def test_resubmit_changes_the_row_and_the_counts(self, client, step, table):
        answer = send(client, step, table)
        row = row_of(answer, step, table)
        assert (answer.status_code, [code for _, code in answer.redirect_chain]) == (200, [303])
        assert row.only(".ops-do").only(".badge").text == "pending"
        assert row.all('[name="reason"]') == []
        around = page(answer).all("[hx-swap-oob]")
        assert {"nav", "health"} < {element.attributes.get("id") for element in around}
        assert len(around) == (4 if table == "overview" else 3)
        assert page(answer).only("#nav")["data-attention"] == ""
        (message,) = page(answer).all('[hx-swap-oob="innerHTML:#messages"]')
        assert message.all(".success")
        event = Event.objects.get(step=step, kind="resubmitted")
        assert (event.actor, event.reason) == ("ann", "it is repaired")

    def test_invalid_form_stays_open(self, client, step, table):
        answer = send(client, step, table, reason=" ")
        row = row_of(answer, step, table)
        assert answer.status_code == 422
        assert row.only(".wrong")
        assert row.only('[name="reason"]')["aria-invalid"] == "true"
        step.refresh_from_db()
        assert step.process_state == "error"

    def test_second_action_shows_the_first_user_and_reason(self, client, step, table):
        press(operator("bob"), step, reason="seen on the phone")
        answer = send(client, step, table)
        row = row_of(answer, step, table)
        assert answer.status_code == 409
        assert "seen on the phone" in row.only('[data-conflict="bob"]').text
        assert row.all('[name="reason"]') == []
        assert Event.objects.filter(step=step, kind="resubmitted").count() == 1
        assert client.get(address(step, table), headers=HTMX).status_code == 409

    def test_row_action_requires_the_permission(self, step, table):
        viewer = browser(person("eve", "operate"))
        assert row_of(page_with(viewer, step, table), step, table).all("[data-open-act]") == []
        assert viewer.get(address(step, table), headers=HTMX).status_code == 403
        assert send(viewer, step, table).status_code == 403
        assert send(browser(), step, table).status_code == 401
        step.refresh_from_db()
        assert step.process_state == "error"

    def test_form_without_htmx_leads_to_the_page_of_the_task(self, client, step, table):
        answer = client.post(address(step, table), {"attempt": step.attempt, **WHY})
        assert answer.status_code == 303
        assert answer["Location"] == reverse("ops:task", args=[step.task_id])


@pytest.mark.parametrize("query", ["?in=nowhere", "?in=incident", "?in=incident&incident=x"])
def test_row_of_an_unknown_table_is_404(client, step, query):
    address = reverse("ops:resubmit", args=[step.id]) + query
    assert client.get(address, headers=HTMX).status_code == 404


@pytest.mark.parametrize("path", ["/ops/", "/ops/tasks/"])
def test_queries_are_independent_of_the_number_of_rows(client, path):
    costs = []
    for _ in range(2):
        in_error(new_task(f"t-{len(costs)}"))
        client.get(path)
        costs.append(query_count(client, path))
    assert costs[0] == costs[1]


class TestTaskPage:
    def test_resubmit_replaces_the_live_part(self, client, step):
        where = reverse("ops:resubmit", args=[step.id])
        answer = client.post(where, {"attempt": step.attempt, **WHY}, headers=HTMX, follow=True)
        assert answer.redirect_chain == [(reverse("ops:task", args=[step.task_id]), 303)]
        shown = page(answer)
        assert shown.all("html") == []
        assert shown.only("#live").only(f"#step-{step.id}").only(".badge.pending")
        assert shown.only('[hx-swap-oob="innerHTML:#messages"]').only(".success")

    def test_conflict_is_shown_among_the_messages(self, client, step):
        press(operator("bob"), step)
        where = reverse("ops:resubmit", args=[step.id])
        answer = client.post(where, {"attempt": step.attempt, **WHY}, headers=HTMX)
        assert (answer.status_code, answer["HX-Retarget"]) == (409, "#messages")
        assert answer["HX-Trigger"] == '{"ops:refresh": {}}'
        assert page(answer).only("[data-conflict]")["data-conflict"] == "bob"
        assert page(answer).all("html") == []

    def test_task_is_held_and_released_in_place(self, client, step):
        where = f"{reverse('ops:hold')}?task={step.task_id}"
        form = client.get(where, headers=HTMX)
        assert form["HX-Retarget"] == "#act"
        assert page(form).all("html") == []
        wrong = client.post(where, {"reason": ""}, headers=HTMX)
        assert (wrong.status_code, wrong["HX-Retarget"]) == (422, "#act")
        held = page(client.post(where, WHY, headers=HTMX, follow=True)).only("#live")
        assert "held" in held.only(".ops-now").texts(".badge")
        hold = Hold.objects.get(task=step.task_id)
        where = reverse("ops:release", args=[hold.id])
        assert "it is repaired" in client.get(where, headers=HTMX).text
        released = page(client.post(where, WHY, headers=HTMX, follow=True)).only("#live")
        assert "held" not in released.only(".ops-now").texts(".badge")
        assert client.post(where, WHY, headers=HTMX).status_code == 409
        assert page(client.get(f"{reverse('ops:hold')}?task={step.task_id}")).only("html")

    def test_poll_leaves_messages_for_the_page(self, client, step):
        press(client, step)
        task = reverse("ops:task", args=[step.task_id])
        polled = page(client.get(f"{task}?seen=other", headers=HTMX))
        assert polled.all('[hx-swap-oob="innerHTML:#messages"]') == []
        assert page(client.get(task)).only("#messages").only(".success")


class TestIncidentPage:
    def test_incident_is_acknowledged_in_place(self, client, step):
        address = reverse("ops:incident", args=[step.incident_id])
        seen = client.get(address).context["detail"].seen
        where = reverse("ops:incident_acknowledge", args=[step.incident_id])
        answer = client.post(where, {"seen": seen}, headers=HTMX, follow=True)
        assert answer.redirect_chain == [(address, 303)]
        assert page(answer).only('[data-acknowledged-by="ann"]')
        assert page(answer).all("html") == []
        assert client.post(where, {"seen": seen}, headers=HTMX).status_code == 409

    def test_invalid_note_stays_open(self, client, step):
        where = reverse("ops:incident_note", args=[step.incident_id])
        answer = client.post(where, {"text": ""}, headers=HTMX)
        assert answer.status_code == 422
        shown = page(answer)
        assert shown.only("#d-note[open]")
        assert shown.only('[role="alert"]')
        assert shown.all("html") == []
