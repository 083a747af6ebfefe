"""The pages of incidents: what they show, what can be done, who may, and that they cost the same."""

import re
from dataclasses import replace
from importlib import import_module

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration import incidents, queries, registry
from orchestration.api import field
from orchestration.fingerprint import VERSION
from orchestration.models import Event, Incident, Operation, Policy, Task
from orchestration.models.fields import DatabaseNow
from orchestration.roles import LEAD, OPERATOR, VIEWER
from orchestration.transitions.record import record
from orchestration.transitions.resubmit import resubmit
from tests.engine import claimed, new_task, reply_to, staff, step_of, sweep
from tests.operations import advance
from tests.operators import LEADER, browser, person, words

pytestmark = pytest.mark.django_db
PAGES = import_module("orchestration.queries.incidents")
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
    incidents.fold("supervisor-1")
    return tasks, Incident.objects.get(code=code)


def who(name, role):
    return browser(person(name, *(one.partition(".")[2] for one in role)))


@pytest.fixture
def lead():
    return who("lea", LEAD)


def address(incident, act=""):
    return f"/ops/incidents/{incident.id}/" + (f"{act}/" if act else "")


def seen(incident):
    return incident.events.order_by("-id").first().id


def titles(page):
    return re.findall(r'/ops/incidents/\d+/">([^<]+)', page.text)


class TestTheList:
    def test_what_hurts_most_comes_first(self, lead):
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
    def test_it_is_narrowed_by_its_address(self, lead, query, count):
        _, first = failing(1, "a")
        _, second = failing(1, "b")
        failing(1, "c")
        incidents.mute(first.id, seen=seen(first), by="lea", reason="known")
        incidents.acknowledge(second.id, seen=seen(second), by="lea")
        Incident.objects.filter(id=second.id).update(assignee=lead.session["_auth_user_id"])
        assert len(titles(lead.get(f"/ops/incidents/?{query}"))) == count

    @pytest.mark.parametrize("sort", ["", "last"])
    def test_its_pages_hold_each_once(self, lead, sort, monkeypatch):
        monkeypatch.setattr(PAGES, "PAGE", 3)
        made = {failing(n % 2 + 1, f"code{n}")[1].title for n in range(8)}
        found, query = [], f"?sort={sort}"
        while query:
            page = lead.get(f"/ops/incidents/{query}")
            found += titles(page)
            more = re.search(r'href="(\?[^"]*after=[^"]*)">More', page.text)
            query = more[1].replace("&amp;", "&") if more else ""
        assert len(found) == 8
        assert set(found) == made

    @pytest.mark.parametrize(
        "query", ["after=x~y", "after=~", "after=1~99999999999999999999", "sort=last&after=nope~1",
                  "state=nonsense", "sort=nonsense", "after=%00~1"]
    )  # fmt: skip
    def test_an_address_that_makes_no_sense_is_said_to(self, lead, query):
        assert lead.get(f"/ops/incidents/?{query}").status_code in {200, 400}

    def test_it_says_when_nothing_is_wrong(self, lead):
        assert "Nothing needs attention" in words(lead.get("/ops/incidents/"))

    def test_it_costs_the_same_however_many_there_are(self, lead):
        costs = []
        for n in range(1, 12, 5):
            failing(n, f"code{n}")
            with CaptureQueriesContext(connection) as made:
                lead.get("/ops/incidents/")
            costs.append(len(made))
        assert len(set(costs)) == 1

    def test_a_poll_that_finds_nothing_new_is_empty(self, lead):
        failing()
        page = lead.get("/ops/incidents/")
        url = re.search(r'hx-get="([^"]+)"', page.text)[1].replace("&amp;", "&")
        assert lead.get(url, headers={"HX-Request": "true"}).status_code == 204


class TestTheForemost:
    def test_they_come_by_their_impact_with_their_trend(self):
        failing(1, "small")
        failing(3, "large")
        (row,) = queries.top(1)
        assert (row.incident.code, row.trend[-1], len(row.trend)) == ("large", 3, 24)


class TestAnIncident:
    def test_it_says_why_these_are_one_and_who_is_hit(self, lead):
        tasks, incident = failing(3)
        page = words(lead.get(address(incident)))
        assert "no route for &lt;#&gt;" in page
        assert f"rules of version {VERSION}" in page
        assert all(task.reference in page for task in tasks)
        assert "Resubmit one, to see…" in page
        assert "Resubmit all 3…" in page
        assert "3 failures in 24 h" in page

    def test_it_tells_what_came_of_resubmissions(self, lead):
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
        incidents.fold("supervisor-1")
        page = words(lead.get(address(incident)))
        assert "Of 3 tasks resubmitted: 1 fixed, 1 failed again , 1 under way" in page
        assert "Nothing of it was resubmitted yet" not in page

    def test_tasks_hit_are_paged_by_key(self, lead, monkeypatch):
        monkeypatch.setattr(PAGES, "HIT", 2)
        tasks, incident = failing(5)
        step = step_of(tasks[0])
        resubmit(step.id, attempt=step.attempt, actor="ann", reason="mended")
        for who_is_hit, count in (("now", 4), ("ever", 5)):
            found, query = [], f"?who={who_is_hit}"
            while query:
                page = lead.get(address(incident) + query)
                part = page.text.split("Who is hit")[1].split('<nav class="pager"')[0]
                found += re.findall(
                    r'class="ops-id"><a id="open-\d+" data-open href="/ops/tasks/([^/]+)/', part
                )
                more = re.search(r'href="(\?[^"#]*before=\d+)#h-hit">Older', page.text)
                query = more[1].replace("&amp;", "&") if more else ""
            assert len(found) == len(set(found)) == count

    def test_what_services_say_is_escaped(self, lead):
        _, incident = failing(1, message=HOSTILE)
        for page in (lead.get(address(incident)), lead.get("/ops/incidents/")):
            assert "<script>alert" not in page.text

    def test_it_costs_the_same_however_many_are_hit(self, lead):
        costs = []
        for count in (1, 40):
            _, incident = failing(count)
            with CaptureQueriesContext(connection) as made:
                lead.get(address(incident))
            costs.append(len(made))
        assert costs[0] == costs[1] <= 20

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
    def test_an_address_that_names_no_page_says_so(self, lead, place, sort):
        page = lead.get("/ops/incidents/", {"after": place, "sort": sort})
        assert page.status_code == 400

    def test_one_that_does_not_exist_is_not_found(self, lead):
        assert lead.get("/ops/incidents/4711/").status_code == 404
        assert lead.post("/ops/incidents/4711/acknowledge/", {"seen": 0}).status_code == 404

    def test_viewers_see_no_personal_data_in_it(self, monkeypatch):
        declared = replace(registry.workflows["greet"], personal=[field("name")])
        monkeypatch.setitem(registry.workflows, "greet", declared)
        task = new_task(data={"name": "Ada Lovelace 2nd"})
        (request,) = claimed()
        record([reply_to(request, "rejected", message="Ada Lovelace 2nd is unknown")])
        incidents.fold("supervisor-1")
        incident = Incident.objects.get()
        assert "Ada Lovelace" in who("ann", OPERATOR).get(address(incident)).text
        viewer = who("vic", VIEWER)
        for page in (viewer.get(address(incident)), viewer.get("/ops/incidents/")):
            assert re.findall("[^\n]*Lovelace[^\n]*", page.text) == []
        assert resubmit(step_of(task).id, attempt=1, actor="ann", reason="known by now") is None
        record([reply_to(request) for request in claimed()])
        for page in (viewer.get(address(incident)), viewer.get("/ops/incidents/")):
            assert re.findall("[^\n]*Lovelace[^\n]*", page.text) == []


class TestMending:
    """The way from the overview to whether it worked, page by page, as links and forms lead."""

    def follow(self, client, page, words):
        return client.get(re.search(rf'href="([^"]+)">{words}', page.text)[1])

    def send(self, client, page, words, **fields):
        """Send the form whose button says `words`, as it stands, with `fields` filled in."""
        form = re.search(
            rf'<form[^>]*action="([^"]+)"[^>]*>((?:(?!</form>).)*>\s*{words}.*?)</form>',
            page.text,
            re.DOTALL,
        )
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[2]))
        hidden.pop("csrfmiddlewaretoken", None)
        return client.post(form[1], {**hidden, **fields}, follow=True)

    @pytest.mark.parametrize("first", [True, False])
    def test_in_four_presses_and_then_it_says_what_came_of_it(self, lead, first):
        _, incident = failing(5)
        page = self.follow(lead, lead.get("/ops/"), "greet: hello failed")
        page = self.send(lead, page, "Resubmit one" if first else "Resubmit all")
        assert page.status_code == 200
        asked = {"reason": "mended", "rate": 1000, "first": "sample" if first else "all"}
        operation = Operation.objects.get()
        assert (operation.incident, operation.sample) == (incident, 1 if first else None)
        page = self.send(lead, page, "Resubmit", **asked)
        assert page.status_code == 200
        operation.refresh_from_db()
        assert operation.items == (1 if first else 5)
        Operation.objects.update(starts_at=DatabaseNow())
        advance(operation)
        sweep(LEADER)
        assert "What was resubmitted is under way" in words(lead.get(address(incident)))
        good, *bad = claimed()
        record(
            [
                reply_to(good),
                *(
                    reply_to(one, "rejected", code="no_route", message="no route for A-1")
                    for one in bad
                ),
            ]
        )
        advance(operation)
        sweep(LEADER)
        incident.refresh_from_db()
        page = words(lead.get(address(incident)))
        if first:
            assert "Of 1 task resubmitted: 1 fixed, 0 failed again" in page
            assert incident.state == "new"
        else:
            assert "Of 5 tasks resubmitted: 1 fixed, 4 failed again" in page
            assert "5 resubmitted: 1 fixed, 4 failed again (same cause)" in page
            assert incident.state == "returned"


class TestActs:
    @pytest.fixture
    def incident(self):
        return failing(2)[1]

    def act(self, client, incident, act, **fields):
        return client.post(address(incident, act), {"seen": seen(incident), **fields})

    def events(self, incident):
        events = Event.objects.filter(incident=incident, kind="incident").order_by("id")
        return list(events.values_list("detail__what", "actor", "reason"))

    def test_acknowledged(self, lead, incident):
        assert self.act(lead, incident, "acknowledge").status_code == 303
        incident.refresh_from_db()
        assert (incident.state, incident.acknowledged_by) == ("known", "lea")
        assert self.events(incident) == [("known", "lea", "")]
        assert incident.alerts.get().acknowledged_by == "lea"
        assert "lea takes care of it" in words(lead.get(address(incident)))

    def test_assigned_and_given_back(self, lead, incident):
        ann = person("ann", "operate")
        assert self.act(lead, incident, "assign", to=ann.id).status_code == 303
        incident.refresh_from_db()
        assert incident.assignee == ann
        assert self.act(lead, incident, "assign", to="").status_code == 303
        assert [text for _, _, text in self.events(incident)] == ["to ann", "to nobody"]

    def test_not_to_strangers(self, lead, incident):
        eve = person("eve")
        assert self.act(lead, incident, "assign", to=eve.id).status_code == 422

    def test_noted(self, lead, incident):
        assert self.act(lead, incident, "note", text="They mend it tonight.").status_code == 303
        assert self.events(incident) == [("note", "lea", "They mend it tonight.")]

    def test_muted_and_unmuted(self, lead, incident):
        assert self.act(lead, incident, "mute", reason="planned", hours="8").status_code == 303
        incident.refresh_from_db()
        assert (incident.state, incident.muted_by) == ("muted", "lea")
        assert incident.muted_until is not None
        assert self.act(lead, incident, "unmute").status_code == 303
        assert [kind for kind, *_ in self.events(incident)] == ["muted", "unmuted"]

    def test_resolved_when_nothing_suffers(self, lead, incident):
        assert self.act(lead, incident, "resolve").status_code == 409
        for task in Task.objects.all():
            step = step_of(task)
            resubmit(step.id, attempt=step.attempt, actor="ann", reason="mended")
        incidents.fold("supervisor-1")
        assert self.act(lead, incident, "resolve").status_code == 303
        incident.refresh_from_db()
        assert incident.state == "resolved"

    @pytest.mark.parametrize(
        ("act", "fields"),
        [("note", {"text": " "}), ("mute", {"reason": ""}), ("mute", {"reason": "x", "hours": "7"}),
         ("acknowledge", {"seen": "x"}), ("assign", {"to": "0"})],
    )  # fmt: skip
    def test_what_is_missing_is_said_and_nothing_is_done(self, lead, incident, act, fields):
        page = self.act(lead, incident, act, **fields)
        assert page.status_code == 422
        assert 'role="alert"' in page.text
        assert self.events(incident) == []

    def test_who_comes_second_is_told_who_was_first_and_when(self, lead, incident):
        old = seen(incident)
        self.act(who("ann", OPERATOR), incident, "acknowledge")
        late = lead.post(address(incident, "mute"), {"seen": old, "reason": "planned"})
        assert late.status_code == 409
        assert re.search(r"ann acknowledged it 0 s ago \( ?\d{4}-\d\d-\d\d ", words(late))
        incident.refresh_from_db()
        assert incident.state == "known"

    @pytest.mark.parametrize("act", ["acknowledge", "assign", "note", "resolve", "mute", "unmute"])
    def test_viewers_are_offered_nothing_and_may_nothing(self, incident, act):
        viewer = who("vic", VIEWER)
        page = viewer.get(address(incident))
        assert page.status_code == 200
        assert f"/{act}/" not in page.text
        assert "operations/new/" not in page.text
        assert self.act(viewer, incident, act).status_code == 403
        assert browser().post(address(incident, act)).status_code == 302
        assert viewer.get(address(incident, act)).status_code == 405
