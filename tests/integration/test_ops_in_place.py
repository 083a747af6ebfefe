"""Acts in place: htmx gets the part that changes and the counts around it; a plain form gets a page."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import incidents
from orchestration.models import Event, Hold, Step
from tests.engine import in_error, new_task
from tests.operators import browser, operator, person, press

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
WHY = {"reason": "it is repaired"}
TABLES = ["overview", "tasks", "incident"]


@pytest.fixture
def client():
    return browser(person("ann", "operate", "resubmit", "hold", "acknowledge"))


@pytest.fixture
def step():
    made = in_error(new_task("t-1"))
    incidents.fold("supervisor-1")
    return Step.objects.get(id=made.id)


def query(step, table):
    return f"?in={table}" + (f"&incident={step.incident_id}" if table == "incident" else "")


def address(step, table, name="resubmit"):
    return reverse(f"ops:{name}", args=[step.id]) + query(step, table)


def send(client, step, table, **fields):
    data = {"attempt": step.attempt, **WHY, **fields}
    return client.post(address(step, table), data, headers=HTMX, follow=True)


def row_of(text, step, table):
    """Return the row's part of an answer, from its opening tag to its closing one."""
    name = {
        "overview": f"failed-{step.id}",
        "tasks": f"row-{step.task_id}",
        "incident": f"hit-{step.id}",
    }
    assert text.count(f'<tbody id="{name[table]}"') == 1
    row = text.split(f'<tbody id="{name[table]}"')[1].split("</tbody>")[0]
    return re.sub(r">[^<]*</time>", "></time>", row)  # ages count on


def page_with(client, step, table):
    path = {
        "overview": "/ops/",
        "tasks": "/ops/tasks/",
        "incident": reverse("ops:incident", args=[step.incident_id]),
    }
    return client.get(path[table])


@pytest.mark.parametrize("table", TABLES)
class TestARow:
    def test_is_drawn_alone_as_on_its_page(self, client, step, table):
        on_page = row_of(page_with(client, step, table).text, step, table)
        alone = client.get(address(step, table, "row"), headers=HTMX)
        assert "<html" not in alone.text
        assert f'hx-get="{address(step, table).replace("&", "&amp;")}"' in on_page
        assert " ".join(
            row_of(alone.text, step, table).replace(" autofocus", "").split()
        ) == " ".join(on_page.split())
        assert "HX-Request" in alone["Vary"]

    def test_opens_its_form(self, client, step, table):
        answer = client.get(address(step, table), headers=HTMX)
        row = row_of(answer.text, step, table)
        assert answer.status_code == 200
        assert 'name="reason"' in row
        assert f'name="attempt" value="{step.attempt}"' in row
        step.refresh_from_db()
        assert step.process_state == "error"

    def test_changes_in_place_and_the_counts_with_it(self, client, step, table):
        answer = send(client, step, table)
        row = row_of(answer.text, step, table)
        assert (answer.status_code, [code for _, code in answer.redirect_chain]) == (200, [303])
        assert "resubmitted by you" in row
        assert 'name="reason"' not in row
        around = answer.text.split("</tbody>")[1]
        assert 'id="nav"' in around
        assert 'id="health"' in around
        assert around.count("hx-swap-oob") == (4 if table == "overview" else 3)
        assert "“hello” was resubmitted." in around
        assert 'title="in error"' not in around
        event = Event.objects.get(step=step, kind="resubmitted")
        assert (event.actor, event.reason) == ("ann", "it is repaired")

    def test_keeps_a_wrong_form_open(self, client, step, table):
        answer = send(client, step, table, reason=" ")
        row = row_of(answer.text, step, table)
        assert answer.status_code == 422
        assert "Say why" in row
        assert 'aria-invalid="true"' in row
        step.refresh_from_db()
        assert step.process_state == "error"

    def test_says_who_was_first(self, client, step, table):
        press(operator("bob"), step, reason="seen on the phone")
        answer = send(client, step, table)
        row = row_of(answer.text, step, table)
        assert answer.status_code == 409
        assert "<strong>bob</strong>" in row
        assert "seen on the phone" in row
        assert 'name="reason"' not in row
        assert Event.objects.filter(step=step, kind="resubmitted").count() == 1
        assert client.get(address(step, table), headers=HTMX).status_code == 409

    def test_is_for_those_who_may(self, step, table):
        viewer = browser(person("eve", "operate"))
        assert "Resubmit…" not in row_of(page_with(viewer, step, table).text, step, table)
        assert viewer.get(address(step, table), headers=HTMX).status_code == 403
        assert send(viewer, step, table).status_code == 403
        assert send(browser(), step, table).status_code == 401
        step.refresh_from_db()
        assert step.process_state == "error"

    def test_without_htmx_the_form_answers_with_a_page(self, client, step, table):
        answer = client.post(address(step, table), {"attempt": step.attempt, **WHY})
        assert answer.status_code == 303
        assert answer["Location"] == reverse("ops:task", args=[step.task_id])


@pytest.mark.parametrize("query", ["?in=nowhere", "?in=incident", "?in=incident&incident=x"])
def test_a_row_of_no_table_is_not_found(client, step, query):
    address = reverse("ops:resubmit", args=[step.id]) + query
    assert client.get(address, headers=HTMX).status_code == 404


@pytest.mark.parametrize("path", ["/ops/", "/ops/tasks/"])
def test_rows_cost_the_same_however_many_there_are(client, path):
    costs = []
    for _ in range(2):
        in_error(new_task(f"t-{len(costs)}"))
        client.get(path)
        with CaptureQueriesContext(connection) as made:
            client.get(path)
        costs.append(len(made))
    assert costs[0] == costs[1]


class TestThePageOfATask:
    def test_becomes_what_the_act_made_of_it(self, client, step):
        where = reverse("ops:resubmit", args=[step.id])
        answer = client.post(where, {"attempt": step.attempt, **WHY}, headers=HTMX, follow=True)
        assert answer.redirect_chain == [(reverse("ops:task", args=[step.task_id]), 303)]
        assert "<html" not in answer.text
        assert 'id="live"' in answer.text
        assert '<span class="badge pending">' in answer.text
        assert 'hx-swap-oob="innerHTML:#messages"' in answer.text
        assert "was resubmitted" in answer.text

    def test_says_beside_it_that_another_was_first(self, client, step):
        press(operator("bob"), step)
        where = reverse("ops:resubmit", args=[step.id])
        answer = client.post(where, {"attempt": step.attempt, **WHY}, headers=HTMX)
        assert (answer.status_code, answer["HX-Retarget"]) == (409, "#messages")
        assert answer["HX-Trigger"] == '{"ops:refresh": {}}'
        assert "<strong>bob</strong>" in answer.text
        assert "<html" not in answer.text

    def test_is_held_and_released(self, client, step):
        where = f"{reverse('ops:hold')}?task={step.task_id}"
        form = client.get(where, headers=HTMX)
        assert form["HX-Retarget"] == "#act"
        assert "<html" not in form.text
        wrong = client.post(where, {"reason": ""}, headers=HTMX)
        assert (wrong.status_code, wrong["HX-Retarget"]) == (422, "#act")
        held = client.post(where, WHY, headers=HTMX, follow=True)
        assert ">held</span>" in held.text
        assert 'id="live"' in held.text
        where = reverse("ops:release", args=[Hold.objects.get(task=step.task_id).id])
        assert "it is repaired" in client.get(where, headers=HTMX).text
        released = client.post(where, WHY, headers=HTMX, follow=True)
        assert ">held</span>" not in released.text
        assert client.post(where, WHY, headers=HTMX).status_code == 409
        assert client.get(f"{reverse('ops:hold')}?task={step.task_id}").text.count("<html") == 1

    def test_a_poll_takes_no_message_from_the_page_that_it_is_for(self, client, step):
        press(client, step)
        task = reverse("ops:task", args=[step.task_id])
        assert "was resubmitted" not in client.get(f"{task}?seen=other", headers=HTMX).text
        assert "was resubmitted" in client.get(task).text


class TestAnIncident:
    def test_is_acknowledged_in_place(self, client, step):
        page = reverse("ops:incident", args=[step.incident_id])
        seen = client.get(page).context["detail"].seen
        where = reverse("ops:incident_acknowledge", args=[step.incident_id])
        answer = client.post(where, {"seen": seen}, headers=HTMX, follow=True)
        assert answer.redirect_chain == [(page, 303)]
        assert "ann takes care of it" in answer.text
        assert "<html" not in answer.text
        assert client.post(where, {"seen": seen}, headers=HTMX).status_code == 409

    def test_keeps_a_wrong_note_open(self, client, step):
        where = reverse("ops:incident_note", args=[step.incident_id])
        answer = client.post(where, {"text": ""}, headers=HTMX)
        assert answer.status_code == 422
        assert '<details id="d-note" open>' in answer.text
        assert 'role="alert"' in answer.text
        assert "<html" not in answer.text
