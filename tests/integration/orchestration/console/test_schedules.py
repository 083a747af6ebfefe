"""The page of schedules: what it shows, at the same cost for any number, and the acts on it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import api
from orchestration.applications.by_hand import new_reference
from orchestration.console.alert_links import alert_address
from orchestration.console.metrics import machinery
from orchestration.console.queries import audit_log, exports, search_query
from orchestration.console.queries import schedules as queries
from orchestration.console.queries.audit_sources import AuditFilter
from orchestration.database import clock
from orchestration.models import Event, Schedule, Submission
from orchestration.schedules import submitting
from tests.support.engine import new_task
from tests.support.operators import browser, person
from tests.support.page import page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_schedules")]
WHY = {"reason": "holidays"}


def put(name="nightly", **options):
    values = {"workflow": "greet", "data": {"name": "Ada"}, "cron": "0 2 * * *", **options}
    api.schedule(name, zone="Europe/Berlin", **values)
    return Schedule.objects.get(name=name)


def shown(client=None, query=""):
    client = client or browser(person("vic", "operate"))
    return page(client.get(reverse("ops:schedules") + query))


def row_of(seen, name="nightly"):
    return seen.only(f'[id="schedule-{name}"]')


@pytest.fixture
def ann():
    return person("ann", "operate", "hold", "start", "see_personal")


def test_schedule_is_shown_with_its_next_times_in_its_zone():
    put()
    seen = shown()
    row_of(seen)
    times = seen.only("[data-next]").texts("li")
    assert len(times) == 5
    assert all("02:00" in time and ("CET" in time or "CEST" in time) for time in times)
    assert "At 02:00 every day" in seen.text
    assert not seen.all('a[href*="/pause/"]')


def test_skipped_due_time_is_shown_with_the_task_that_had_not_ended():
    row = put()
    submitting.submit(row.due_at, [row.id])
    submitting.submit(row.due_at + timedelta(days=1), [row.id])
    seen = shown()
    assert seen.only("[data-skipped]").attributes["data-skipped"] == "1"
    first = row.timing.local(row.due_at)
    assert f"{first:%d %b %H:%M}" in seen.only("[data-skipped]").text


@pytest.mark.parametrize(
    ("state", "change"),
    [
        ("paused", {"paused": True}),
        ("failing", {"problem": "it is broken"}),
        ("late", {"look_at": "2020-01-01T00:00:00Z"}),
        ("waiting", {"waiting_due": "2020-01-01T00:00:00Z"}),
    ],
)
def test_state_is_shown_and_narrows_the_list(state, change):
    put("calm")
    Schedule.objects.filter(id=put("other").id).update(**change)
    seen = shown(query=f"?state={state}&workflow=greet")
    assert [row.attributes["data-state"] for row in seen.all("tr[data-state]")] == [state]
    assert not shown(browser(person("eve", "operate")), "?workflow=invite").all("tr[data-state]")


def test_odd_addresses_are_no_errors():
    put()
    client = browser(person("vic", "operate"))
    for query in ("?state=%00", "?after=%00", "?workflow=%00", "?after=zzz", "?state[]=x"):
        assert client.get(reverse("ops:schedules") + query).status_code == 200


def test_pages_follow_each_other_by_name():
    for number in range(queries.PAGE + 3):
        put(f"n-{number:03}")
    first = queries.schedules(queries.Filters())
    second = queries.schedules(queries.Filters(after=first.next))
    assert (len(first.rows), len(second.rows)) == (queries.PAGE, 3)
    assert (first.total, second.next) == (queries.PAGE + 3, "")


@pytest.mark.parametrize("count", [2, 40])
def test_page_costs_the_same_for_any_number_of_schedules(count):
    for number in range(count):
        row = put(f"n-{number:03}")
        task = new_task(f"n-{number:03}/x")
        Schedule.objects.filter(id=row.id).update(
            last_reference=task.reference, last_due=row.due_at
        )
    with CaptureQueriesContext(connection) as asked:
        assert len(queries.schedules(queries.Filters()).rows) == count
    assert len(asked) == 5


def test_pause_and_resume_are_kept_with_who_and_why(ann):
    row, client = put(), browser(ann)
    address = reverse("ops:schedule_pause", args=[row.id])
    assert client.post(address, {}).status_code == 422
    assert client.post(address, WHY).status_code == 303
    row.refresh_from_db()
    assert (row.paused, row.look_at) == (True, None)
    assert client.post(address, WHY).status_code == 409
    assert client.post(reverse("ops:schedule_resume", args=[row.id]), WHY).status_code == 303
    row.refresh_from_db()
    assert not row.paused
    assert row.look_at == row.due_at > clock.database_now()
    lines = audit_log.acts(AuditFilter(kind="schedule", personal=True))
    assert [(line.actor, line.subject, line.reason) for line in lines] == [
        ("ann", "nightly", "holidays")
    ] * 2
    assert lines[1].changes == [("paused", "False", "True")]


def test_run_now_submits_one_task_however_often_its_form_is_sent(ann):
    row, client = put(), browser(ann)
    address = reverse("ops:schedule_run", args=[row.id])
    form = {**WHY, "reference": new_reference(schedule="nightly")}
    answers = [client.post(address, form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    made = Submission.objects.get()
    assert (made.reference, made.data) == (form["reference"], {"name": "Ada"})
    event = Event.objects.get(kind="started")
    assert (event.actor, event.reason) == ("ann", "holidays")
    other = {**WHY, "reference": new_reference(schedule="nightly")}
    assert client.post(address, other).status_code == 409  # it has not ended
    assert client.post(address, {**WHY, "reference": "x"}).status_code == 422
    assert Submission.objects.count() == 1


def test_run_now_of_an_input_that_does_not_fit_any_more_is_refused(ann):
    row = put()
    Schedule.objects.update(data={})
    form = {**WHY, "reference": new_reference(schedule="nightly")}
    answer = browser(ann).post(reverse("ops:schedule_run", args=[row.id]), form)
    assert answer.status_code == 422
    assert not Submission.objects.exists()


def test_tasks_of_a_schedule_are_found(ann):
    put()
    new_task("nightly/2026-01-01T01:00:00Z")
    new_task("nightly-not/2026-01-01T01:00:00Z")
    search = search_query.read({"q": "schedule:nightly"}, personal=True)
    assert not search.problems
    seen = page(browser(ann).get(reverse("ops:tasks") + "?q=schedule:nightly"))
    assert "nightly/2026-01-01T01:00:00Z" in seen.text
    assert "nightly-not/" not in seen.text


@pytest.mark.parametrize("personal", [True, False])
def test_export_has_the_input_for_those_who_may_see_it(personal):
    put()
    listing = exports.of_schedules(queries.Filters(), "", personal=personal)
    (record,) = listing.records()
    assert record["cron"] == "0 2 * * *"
    assert record["data"] == ({"name": "Ada"} if personal else None)


@pytest.mark.parametrize("state", ["late", "failing"])
def test_alert_leads_to_the_schedules_it_is_about(state):
    address = alert_address(f"system/schedule/{state}/greet", 7)
    assert address == f"/ops/schedules/?state={state}&workflow=greet"


def test_figures_are_metrics():
    put()
    Schedule.objects.update(skipped=3, problem="it is broken")
    figures = {
        sample.name: sample.value
        for metric in machinery._schedules()
        for sample in metric.samples
        if sample.labels == {"workflow": "greet"}
    }
    assert figures["sas_schedule_skipped"] == 3
    assert figures["sas_schedule_failing"] == 1
    assert figures["sas_schedule_late"] == 0
