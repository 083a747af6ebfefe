"""The pages of incidents: contents, actions, permissions and the number of queries."""

import re
from dataclasses import replace
from importlib import import_module

import pytest

from orchestration import registry
from orchestration.api import field
from orchestration.console.queries.incidents import IncidentFilters, incidents
from orchestration.incidents import actions, aggregation
from orchestration.incidents.fingerprint import VERSION
from orchestration.models import Event, Incident, Operation, Policy, Task
from orchestration.models.fields import DatabaseNow
from orchestration.people.roles import LEAD, OPERATOR, VIEWER
from orchestration.transitions.replies import record
from orchestration.transitions.resubmit import resubmit
from tests.support.engine import claimed, new_task, reply_to, staff, step_of, sweep
from tests.support.operations import advance
from tests.support.operators import LEADER, browser, person
from tests.support.page import POLL, conflict_of, page, poll_of, query_count

pytestmark = pytest.mark.django_db
PAGES = import_module("orchestration.console.queries.incidents")
HOSTILE = "</td><script>alert(1)</script>"


@pytest.fixture(autouse=True)
def _staffed(db):
    staff()
    Policy.objects.filter(agent="greeter").update(window=1000)


def failing(count=1, code="no_route", message="no route for {}"):
    """Return tasks whose first step was rejected, and their incident."""
    tasks = [new_task() for _ in range(count)]
    for request in claimed():
        text = message.format(f"A-{request.step}")
        record([reply_to(request, "rejected", code=code, message=text)])
    aggregation.aggregate("supervisor-1")
    return tasks, Incident.objects.get(code=code)


def who(name, role):
    return browser(person(name, *(permission.partition(".")[2] for permission in role)))


@pytest.fixture
def lead():
    return who("lea", LEAD)


def address(incident, act=""):
    return f"/ops/incidents/{incident.id}/" + (f"{act}/" if act else "")


def seen(incident):
    return incident.events.order_by("-id").first().id


def titles(response):
    rows = page(response).all('tr[id^="incident-"]')
    return [row.only("a").text for row in rows]


def following(response, rel):
    """Return the query of a link to another page, if it is there."""
    links = page(response).all(f'[rel="{rel}"]')
    return links[0]["href"].partition("#")[0] if links else ""


class TestIncidentList:
    def test_list_is_ordered_by_impact(self, lead):
        failing(1, "small")
        failing(3, "large")
        assert titles(lead.get("/ops/incidents/")) == [
            "greet: hello failed (large)", "greet: hello failed (small)",
        ]  # fmt: skip
        by_last = titles(lead.get("/ops/incidents/?sort=last"))
        assert by_last[0] == "greet: hello failed (large)"

    @pytest.mark.parametrize(
        ("query", "count"),
        [
            ("", 2),
            ("state=all", 3),
            ("state=muted", 1),
            ("state=known", 1),
            ("workflow=greet", 2),
            ("workflow=process_order", 0),
            ("step=hello&agent=greeter", 2),
            ("step=again", 0),
            ("mine=on", 1),
        ],
    )
    def test_list_is_filtered_by_its_address(self, lead, query, count):
        _, first = failing(1, "a")
        _, second = failing(1, "b")
        failing(1, "c")
        actions.mute(first.id, seen=seen(first), by="lea", reason="known")
        actions.acknowledge(second.id, seen=seen(second), by="lea")
        Incident.objects.filter(id=second.id).update(assignee=lead.session["_auth_user_id"])
        assert len(titles(lead.get(f"/ops/incidents/?{query}"))) == count

    @pytest.mark.parametrize("sort", ["", "last"])
    def test_pages_list_each_incident_once(self, lead, sort, monkeypatch):
        monkeypatch.setattr(PAGES, "PAGE", 3)
        made = {failing(n % 2 + 1, f"code{n}")[1].title for n in range(8)}
        listed, query = [], f"?sort={sort}"
        while query:
            response = lead.get(f"/ops/incidents/{query}")
            listed += titles(response)
            query = following(response, "next")
        assert len(listed) == 8
        assert set(listed) == made

    @pytest.mark.parametrize(
        "query", ["after=x~y", "after=1~99999999999999999999", "sort=last&after=nope~1",
                  "state=nonsense", "sort=nonsense", "after=%00~1"]
    )  # fmt: skip
    def test_invalid_filter_is_reported(self, lead, query):
        assert lead.get(f"/ops/incidents/?{query}").status_code == 400

    def test_page_after_an_empty_place_is_the_first(self, lead):
        failing()
        assert len(titles(lead.get("/ops/incidents/?after=~"))) == 1

    def test_list_without_incidents_is_marked_as_empty(self, lead):
        assert page(lead.get("/ops/incidents/")).only('[data-empty="calm"]')

    def test_queries_of_the_list_are_independent_of_its_length(self, lead):
        costs = []
        for n in range(1, 12, 5):
            failing(n, f"code{n}")
            costs.append(query_count(lead, "/ops/incidents/"))
        assert len(set(costs)) == 1

    def test_poll_without_changes_is_empty(self, lead):
        failing()
        url = poll_of(lead.get("/ops/incidents/"))
        assert lead.get(url, headers=POLL).status_code == 204


def test_incidents_have_impact_and_trend():
    failing(1, "small")
    failing(3, "large")
    row, _ = incidents(IncidentFilters()).rows
    assert (row.incident.code, row.trend[-1], len(row.trend)) == ("large", 3, 24)


class TestIncidentPage:
    def test_incident_shows_its_fingerprint_and_affected_tasks(self, lead):
        tasks, incident = failing(3)
        shown = page(lead.get(address(incident)))
        why = shown.section("h-why")
        assert why.only("q").text == "no route for <#>"
        assert f"version {VERSION}" in why.text
        assert why.only("figcaption").numbers()[:2] == [3, 24]  # failures in hours
        affected = [row[0] for row in shown.section("h-hit").rows()]
        assert affected == [task.reference for task in reversed(tasks)]
        forms = shown.section("h-acts").all('form[action="/ops/operations/new/"]')
        assert [len(form.all('[name="sample"]')) for form in forms] == [1, 0]
        assert forms[1].numbers() == [3]

    def test_incident_shows_the_results_of_resubmissions(self, lead):
        tasks, incident = failing(3)
        for task in tasks:
            step = step_of(task)
            resubmit(step.id, attempt=step.attempt, actor="ann", reason="mended")
        first, second, _ = claimed()
        record(
            [
                reply_to(first),
                reply_to(second, "rejected", code="no_route", message="no route for 1"),
            ]
        )
        aggregation.aggregate("supervisor-1")
        shown = page(lead.get(address(incident)))
        assert shown.only('[data-fixed="1"][data-again="1"][data-in-progress="1"]')
        assert shown.all("#never-resubmitted") == []

    def test_affected_tasks_are_paged_by_key(self, lead, monkeypatch):
        monkeypatch.setattr(PAGES, "HIT", 2)
        tasks, incident = failing(5)
        step = step_of(tasks[0])
        resubmit(step.id, attempt=step.attempt, actor="ann", reason="mended")
        for who_is_hit, count in (("now", 4), ("ever", 5)):
            listed, query = [], f"?who={who_is_hit}"
            while query:
                response = lead.get(address(incident) + query)
                listed += page(response).section("h-hit").texts("a[data-open]")
                query = following(response, "next")
            assert len(listed) == len(set(listed)) == count

    def test_messages_of_services_are_escaped(self, lead):
        _, incident = failing(1, message=HOSTILE)
        for response in (lead.get(address(incident)), lead.get("/ops/incidents/")):
            assert "<script>alert" not in response.text

    def test_queries_are_independent_of_the_number_of_affected_tasks(self, lead):
        costs = []
        for count in (1, 40):
            _, incident = failing(count)
            costs.append(query_count(lead, address(incident)))
        assert costs[0] == costs[1] <= 22

    @pytest.mark.parametrize(
        ("place", "sort"),
        [
            ("--5~7", ""),
            ("5~x", ""),
            ("~1", ""),
            ("²~1", ""),
            ("9999-12-31T23:59:59-23:59~1", "last"),
        ],
    )
    def test_invalid_page_is_reported(self, lead, place, sort):
        response = lead.get("/ops/incidents/", {"after": place, "sort": sort})
        assert response.status_code == 400

    def test_unknown_incident_is_404(self, lead):
        assert lead.get("/ops/incidents/4711/").status_code == 404
        assert lead.post("/ops/incidents/4711/acknowledge/", {"seen": 0}).status_code == 404

    def test_viewer_sees_no_personal_data(self, monkeypatch):
        declared = replace(registry.workflows["greet"], personal=[field("name")])
        monkeypatch.setitem(registry.workflows, "greet", declared)
        task = new_task(data={"name": "Ada Lovelace 2nd"})
        (request,) = claimed()
        record([reply_to(request, "rejected", message="Ada Lovelace 2nd is unknown")])
        aggregation.aggregate("supervisor-1")
        incident = Incident.objects.get()
        assert "Ada Lovelace" in who("ann", OPERATOR).get(address(incident)).text
        viewer = who("vic", VIEWER)
        for response in (viewer.get(address(incident)), viewer.get("/ops/incidents/")):
            assert re.findall("[^\n]*Lovelace[^\n]*", response.text) == []
        assert resubmit(step_of(task).id, attempt=1, actor="ann", reason="known by now") is None
        record([reply_to(request) for request in claimed()])
        for response in (viewer.get(address(incident)), viewer.get("/ops/incidents/")):
            assert re.findall("[^\n]*Lovelace[^\n]*", response.text) == []


class TestResubmission:
    """The way from the overview to the result, as the links and forms of the pages lead."""

    def send(self, client, form, **fields):
        """Send a form with its hidden fields as they are, and `fields` filled in."""
        hidden = {field["name"]: field["value"] for field in form.all('[type="hidden"]')}
        return page(client.post(form["action"], {**hidden, **fields}, follow=True))

    @pytest.mark.parametrize("first", [True, False])
    def test_resubmission_in_four_clicks_shows_its_result(self, lead, first):
        _, incident = failing(5)
        causes = page(lead.get("/ops/")).section("h-causes")
        link = causes.only(f'[href="{address(incident)}"]')
        shown = page(lead.get(link["href"]))
        sample, every = shown.section("h-acts").all('form[action="/ops/operations/new/"]')
        shown = self.send(lead, sample if first else every)
        operation = Operation.objects.get()
        assert (operation.incident, operation.sample) == (incident, 1 if first else None)
        (confirm,) = shown.all('form[action*="/confirm/"]')
        typed = {"reason": "mended", "rate": 1000, "first": "sample" if first else "all"}
        self.send(lead, confirm, **typed)
        operation.refresh_from_db()
        assert operation.items == (1 if first else 5)
        Operation.objects.update(starts_at=DatabaseNow())
        advance(operation)
        sweep(LEADER)
        assert page(lead.get(address(incident))).only('[data-state="retrying"]')
        good, *bad = claimed()
        record(
            [
                reply_to(good),
                *(
                    reply_to(request, "rejected", code="no_route", message="no route for A-1")
                    for request in bad
                ),
            ]
        )
        advance(operation)
        sweep(LEADER)
        incident.refresh_from_db()
        after = page(lead.get(address(incident))).section("h-after")
        sentence = after.all("p")[0]
        if first:
            assert sentence.numbers() == [1, 1, 0]  # resubmitted, fixed, failed again
            assert incident.state == "new"
        else:
            assert sentence.numbers() == [5, 1, 4]
            (row,) = [row.cells() for row in after.all("tr") if row.cells()]
            assert row[3].numbers() == [5, 1, 4]
            assert incident.state == "returned"


class TestActions:
    @pytest.fixture
    def incident(self):
        return failing(2)[1]

    def act(self, client, incident, act, **fields):
        return client.post(address(incident, act), {"seen": seen(incident), **fields})

    def events(self, incident):
        events = Event.objects.filter(incident=incident, kind="incident").order_by("id")
        return list(events.values_list("detail__what", "actor", "reason"))

    def test_incident_is_acknowledged(self, lead, incident):
        assert self.act(lead, incident, "acknowledge").status_code == 303
        incident.refresh_from_db()
        assert (incident.state, incident.acknowledged_by) == ("known", "lea")
        assert self.events(incident) == [("known", "lea", "")]
        assert incident.alerts.get().acknowledged_by == "lea"
        shown = page(lead.get(address(incident))).only('[data-acknowledged-by="lea"]')
        assert " lea " in shown.only("strong").text

    def test_incident_is_assigned_and_unassigned(self, lead, incident):
        viewer = person("vic", "operate")
        assert self.act(lead, incident, "assign", to=viewer.id).status_code == 422
        ann = person("ann", "operate", "acknowledge")
        assert self.act(lead, incident, "assign", to=ann.id).status_code == 303
        incident.refresh_from_db()
        assert incident.assignee == ann
        assert self.act(lead, incident, "assign", to="").status_code == 303
        assert [text for _, _, text in self.events(incident)] == ["to ann", "no assignee"]

    def test_incident_cannot_be_assigned_to_an_unknown_user(self, lead, incident):
        eve = person("eve")
        assert self.act(lead, incident, "assign", to=eve.id).status_code == 422

    def test_note_is_added(self, lead, incident):
        assert self.act(lead, incident, "note", text="They mend it tonight.").status_code == 303
        assert self.events(incident) == [("note", "lea", "They mend it tonight.")]

    def test_muted_incident_shows_who_works_on_it(self, lead, incident):
        assert self.act(lead, incident, "acknowledge").status_code == 303
        assert self.act(lead, incident, "mute", reason="planned", hours="8").status_code == 303
        shown = page(lead.get(address(incident)))
        assert "lea" in shown.only("[data-still-acknowledged]").text

    def test_incident_is_muted_and_unmuted(self, lead, incident):
        assert self.act(lead, incident, "mute", reason="planned", hours="8").status_code == 303
        incident.refresh_from_db()
        assert (incident.state, incident.muted_by) == ("muted", "lea")
        assert incident.muted_until is not None
        assert self.act(lead, incident, "unmute").status_code == 303
        assert [kind for kind, *_ in self.events(incident)] == ["muted", "unmuted"]

    def test_incident_is_resolved_only_when_no_task_is_in_error(self, lead, incident):
        assert self.act(lead, incident, "resolve").status_code == 409
        for task in Task.objects.all():
            step = step_of(task)
            resubmit(step.id, attempt=step.attempt, actor="ann", reason="mended")
        aggregation.aggregate("supervisor-1")
        assert self.act(lead, incident, "resolve").status_code == 303
        incident.refresh_from_db()
        assert incident.state == "resolved"

    @pytest.mark.parametrize(
        ("act", "fields"),
        [("note", {"text": " "}), ("mute", {"reason": ""}), ("mute", {"reason": "x", "hours": "7"}),
         ("acknowledge", {"seen": "x"}), ("assign", {"to": "0"})],
    )  # fmt: skip
    def test_invalid_field_is_reported_and_nothing_changes(self, lead, incident, act, fields):
        refused = self.act(lead, incident, act, **fields)
        assert refused.status_code == 422
        assert page(refused).only('.errors[role="alert"]')
        assert self.events(incident) == []

    def test_second_action_names_the_first_user_and_time(self, lead, incident):
        old = seen(incident)
        self.act(who("ann", OPERATOR), incident, "acknowledge")
        late = lead.post(address(incident, "mute"), {"seen": old, "reason": "planned"})
        actor, sentence = conflict_of(late)
        assert actor == "ann"
        assert re.search(r"acknowledged it 0 s ago \( ?\d{4}-\d\d-\d\d ", sentence)
        incident.refresh_from_db()
        assert incident.state == "known"

    @pytest.mark.parametrize("act", ["acknowledge", "assign", "note", "resolve", "mute", "unmute"])
    def test_viewer_has_no_actions(self, incident, act):
        viewer = who("vic", VIEWER)
        seen_page = viewer.get(address(incident))
        assert seen_page.status_code == 200
        assert f"/{act}/" not in seen_page.text
        assert "operations/new/" not in seen_page.text
        assert self.act(viewer, incident, act).status_code == 403
        assert browser().post(address(incident, act)).status_code == 302
        assert viewer.get(address(incident, act)).status_code == 405
