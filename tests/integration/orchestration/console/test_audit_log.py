"""The audit page: each action of a user once, from all the tables that record actions."""

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType

from orchestration.console.queries.audit_log import PAGE
from orchestration.incidents.events import incident_event
from orchestration.models import Event, Incident, Policy
from orchestration.models.history import EventKind
from orchestration.models.incident import IncidentEventKind
from orchestration.transitions.holds import hold, release
from tests.support.engine import in_error, new_task
from tests.support.operators import browser, person, press
from tests.support.page import POLL, page, poll_of, query_count

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return person("ann", "operate", "resubmit", "see_personal")


@pytest.fixture
def client(ann):
    return browser(ann)


def change_policy(user, **fields):
    policy = Policy.objects.get(agent="greeter")
    for name, value in fields.items():
        setattr(policy, name, value)
    policy._history_user = user
    policy.save()


def log_in_admin(user):
    LogEntry.objects.create(
        user=user,
        content_type=ContentType.objects.get_for_model(User),
        object_id="7",
        object_repr="bob",
        action_flag=CHANGE,
        change_message="[]",
    )


def note(actor, text):
    incident = Incident.objects.create(
        fingerprint="f" * 40, version=1, workflow="greet", step="hello", agent="greeter",
        outcome="rejected", title="hello: refused", severity="critical",
    )  # fmt: skip
    incident_event(incident, IncidentEventKind.NOTE, by=actor, text=text, person=True).save()


def test_entries_of_each_kind_are_listed(client, ann):
    press(client, in_error(new_task("t-1")), reason="the bank was called")
    held = hold(actor="bob", reason="they move house", agent="greeter")
    release(held.id, actor="eve", reason="they have moved")
    note("dan", "known since Monday")
    change_policy(ann, failure_threshold=7)
    log_in_admin(ann)
    lines = [line[1:] for line in page(client.get("/ops/audit/")).rows()]
    assert lines == [  # and no event without a user
        ["ann", "Admin: user changed", "bob", "No fields changed."],
        ["ann", "Policy changed", "greeter", "failure threshold: 5 → 7"],
        ["dan", "Incident: note", "hello: refused", "known since Monday"],
        ["eve", "Released", "agent greeter", "they have moved"],
        ["bob", "Held", "agent greeter", "they move house"],
        ["ann", "Resubmitted", "hello of t-1", "the bank was called"],
    ]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("actor=bob", {"bob"}),
        ("actor=BOB", {"bob"}),
        ("kind=resubmitted", {"ann"}),
        ("kind=incident", {"dan"}),
        ("kind=policy", {"ann"}),
        ("actor=zoe", set()),
        ("after=2000-01-01", {"ann", "bob", "dan"}),
        ("before=2000-01-01", set()),
    ],
)
def test_entries_are_filtered(client, ann, query, shown):
    press(client, in_error(new_task("t-1")))
    hold(actor="bob", reason="they move house", agent="greeter")
    note("dan", "known")
    change_policy(ann, failure_threshold=7)
    lines = page(client.get(f"/ops/audit/?{query}")).rows()
    assert {actor for _, actor, *_ in lines} == shown


@pytest.mark.parametrize(
    "query",
    [
        "kind=nonsense",
        "after=x",
        "after=2026-99-99",
        "from=2026-99-99",
        "older=x",
        "older=2026-01-01~0~1",
    ],
)
def test_invalid_filter_is_reported(client, query):
    response = client.get(f"/ops/audit/?{query}")
    assert response.status_code == 400
    assert page(response).only(".errors")


def test_pages_go_both_ways_across_all_sources(client, ann):
    count = PAGE + 20
    for number in range(count // 2):
        Event.objects.create(kind=EventKind.HELD, actor="bob", reason=f"because of {number}")
        change_policy(ann, window=number + 101)
    first = page(client.get("/ops/audit/"))
    second = page(client.get("/ops/audit/" + first.only('[rel="next"]')["href"]))
    lines = [line[1:] for line in first.rows()]
    older = [line[1:] for line in second.rows()]
    assert len(lines) == PAGE
    together = {tuple(line) for line in lines + older}
    assert len(together) == len(lines) + len(older) == count
    newer = page(client.get("/ops/audit/" + second.only('[rel="prev"]')["href"]))
    assert [line[1:] for line in newer.rows()] == lines


def test_new_entries_are_offered_without_moving_the_list(client):
    Event.objects.create(kind=EventKind.HELD, actor="bob", reason="first")
    address = poll_of(client.get("/ops/audit/"))
    Event.objects.create(kind=EventKind.HELD, actor="bob", reason="second")
    polled = page(client.get(address, headers=POLL))
    assert polled.only(".ops-listbar").numbers() == [1]
    assert [line[-1] for line in polled.rows()] == ["first"]


def test_queries_are_independent_of_the_number_of_entries(client, ann):
    def both(number):
        press(client, in_error(new_task()))
        change_policy(ann, window=number + 101)

    both(0)
    both(1)
    with_two = query_count(client, "/ops/audit/")
    for number in range(2, 20):
        both(number)
    assert query_count(client, "/ops/audit/") == with_two
    assert with_two <= 22
