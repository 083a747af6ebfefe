"""The decisions that steps wait for: in their order, by role, page by page, and made in place."""

from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from orchestration import registry
from orchestration.console.queries import decisions
from orchestration.models import Step
from orchestration.payloads.placeholders import field
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.operators import browser, person
from tests.support.page import page, query_count

pytestmark = pytest.mark.django_db
ADDRESS = "/ops/decisions/"
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
IN_PLACE = {"HX-Request": "true"}


def asks(role, within=3600.0):
    return Declared(
        name=f"ask_{role}", person=role, request={"who": field("who"), "cents": 5}, returns=OK,
        ends_within=within,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _workflows(monkeypatch):
    for role, within in (("fraud", 600.0), ("legal", 60.0)):
        workflow = Workflow(
            name=role, steps=[asks(role, within)], time_allowed=1e6, contact=field("who"),
            personal=[field("who")],
        )  # fmt: skip
        monkeypatch.setitem(registry.workflows, role, workflow)


@pytest.fixture
def waiting(run):
    """Two that wait for fraud, then one for legal, which is due first."""
    for number, role in enumerate(["fraud", "fraud", "legal"]):
        run.submit(role, {"who": f"Ada-{number}"}, reference=f"{role}-{number}")
        run.go()
    return Step.objects.filter(process_state="awaiting").order_by("id")


def able(*permissions, groups=(), name="ann"):
    user = person(name, "operate", *permissions)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return browser(user)


def listed(client, query=""):
    return page(client.get(ADDRESS + query)).only("#live").texts("[data-open]")


def test_due_first_and_those_of_ones_role_before(waiting):
    assert listed(able()) == ["legal-2", "fraud-0", "fraud-1"]
    assert listed(able(groups=["fraud"], name="bea")) == ["fraud-0", "fraud-1", "legal-2"]


def test_one_role_alone(waiting):
    client = able(groups=["legal"])
    assert listed(client, "?role=fraud") == ["fraud-0", "fraud-1"]
    shown = page(client.get(f"{ADDRESS}?role=none")).only("#live")
    assert shown.only('[data-empty="role"]')
    views = page(client.get(ADDRESS)).all(".ops-views")[0]
    assert views.texts("a") == [
        "All roles",
        "fraud",
        "legal yours",
        "returns",
        "risk",
        "workshop",
    ]  # the last three are the shop's


def test_count_is_beside_the_page_and_calm(waiting):
    badge = page(able().get("/ops/")).only("#nav-decisions").only(".count")
    assert badge.text.startswith("3")
    assert badge["class"] == "count"


def test_nothing_waits():
    shown = page(able().get(ADDRESS))
    assert shown.only("#live").only('[data-empty="calm"]')
    assert shown.only("#nav-decisions").all(".count") == []


def test_facts_and_contact_are_shown_by_right(waiting):
    assert "Ada-0" not in able(name="bea").get(ADDRESS).text
    shown = page(able("see_personal").get(ADDRESS)).only(f"#decision-{waiting[0].id}")
    assert shown.only("[data-contact]").text == "ada-0"
    assert shown.texts(".ops-fact") == ["who Ada-0", "cents 5"]


def test_pages_follow_each_other_across_roles(run, waiting, monkeypatch):
    monkeypatch.setattr(decisions, "PAGE", 2)
    client = able(groups=["fraud"])
    first = page(client.get(ADDRESS)).only("#live")
    assert first.texts("[data-open]") == ["fraud-0", "fraud-1"]
    following = first.only('[rel="next"]')["href"]
    second = page(client.get(ADDRESS + following)).only("#live")
    assert second.texts("[data-open]") == ["legal-2"]
    assert second.all('[rel="next"]') == []


@pytest.mark.parametrize("place", ["x", "0~2026-01-01~1", "0~2026-01-01T00:00:00+00:00~-1"])
def test_place_that_is_none_is_not_found(place):
    assert able().get(f"{ADDRESS}?after={quote(place)}").status_code == 404


def test_queries_are_independent_of_the_number(run, waiting):
    clients = able(name="bea"), able("see_personal", "correct", groups=["fraud"])
    before = [query_count(client, ADDRESS) for client in clients]
    for number in range(5):
        run.submit("fraud", {"who": f"Eve-{number}"})
    run.go()
    assert [query_count(client, ADDRESS) for client in clients] == before


class TestInPlace:
    def in_row(self, step):
        return reverse("ops:record", args=[step.id]) + "?in=decisions"

    def test_form_opens_in_its_row(self, waiting):
        step, client = waiting[0], able("correct", "see_personal")
        shown = page(client.get(self.in_row(step), headers=IN_PLACE))
        row = shown.only(f"#decision-{step.id}")
        assert row.only("form")["hx-post"] == self.in_row(step)
        assert row.only("[data-request]").texts("dd") == ["Ada-0", "5"]
        assert len(row.all("[autofocus]")) == 2  # the two ways to end it: the first gets the focus

    def decide(self, client, step, **typed):
        sent = {"attempt": step.attempt, "ended": "done", "payload": '{"ok": true}', "reason": "ok"}
        return client.post(self.in_row(step), {**sent, **typed}, headers=IN_PLACE, follow=True)

    def test_decision_leaves_the_row_as_it_ended(self, waiting):
        step, client = waiting[0], able("correct")
        answer = self.decide(client, step)
        row = page(answer).only(f"#decision-{step.id}")
        assert row.texts(".badge") == ["processed"]
        assert page(answer).only("#nav-decisions").only(".count").text.startswith("2")
        assert listed(client) == ["legal-2", "fraud-1"]

    def test_what_is_wrong_stays_open(self, waiting):
        step = waiting[0]
        answer = self.decide(able("correct"), step, payload='{"ok": 1}')
        assert answer.status_code == 422
        assert page(answer).only(f"#decision-{step.id}").only("#id_payload_error")

    def test_decision_that_came_too_late_says_by_whom(self, waiting):
        step = waiting[0]
        self.decide(able("correct", name="bea"), step)
        answer = self.decide(able("correct"), step)
        assert answer.status_code == 409
        assert page(answer).only('[data-conflict="bea"]')

    def test_without_the_permission_no_form_is_offered(self, waiting):
        assert page(able().get(ADDRESS)).only("#live").all("[data-open-act]") == []
        assert able(name="bea").get(self.in_row(waiting[0])).status_code == 403
