"""The audit page: every act of people, from wherever it is kept, each once."""

import re

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.incidents.history import told
from orchestration.models import Event, Incident, Policy
from orchestration.models.history import EventKind
from orchestration.models.incident import Deed
from orchestration.queries.trail import PAGE
from orchestration.transitions.holds import hold, release
from tests.engine import in_error, new_task
from tests.operators import browser, person, press, words

pytestmark = pytest.mark.django_db
POLL = {"HX-Request": "true"}


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
    told(incident, Deed.NOTE, by=actor, text=text, person=True).save()


def test_every_kind_of_act_is_there(client, ann):
    press(client, in_error(new_task("t-1")), reason="the bank was called")
    held = hold(actor="bob", reason="they move house", agent="greeter")
    release(held.id, actor="eve", reason="they have moved")
    note("dan", "known since Monday")
    change_policy(ann, failure_threshold=7)
    log_in_admin(ann)
    page = words(client.get("/ops/audit/"))
    for said in (
        "ann Resubmitted hello of t-1 the bank was called",
        "bob Held agent greeter they move house",
        "eve Released agent greeter they have moved",
        "dan Incident: note hello: refused known since Monday",
        "ann Policy changed greeter failure threshold: 5 → 7",
        "ann In the admin: user changed bob",
    ):
        assert said in page
    assert "Stopped in error" not in page  # nobody did that


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("actor=bob", {"bob"}),
        ("actor=BOB", {"bob"}),
        ("kind=resubmitted", {"ann"}),
        ("kind=incident", {"dan"}),
        ("kind=policy", {"ann"}),
        ("actor=nobody", set()),
        ("after=2000-01-01", {"ann", "bob", "dan"}),
        ("before=2000-01-01", set()),
    ],
)
def test_it_is_narrowed(client, ann, query, shown):
    press(client, in_error(new_task("t-1")))
    hold(actor="bob", reason="they move house", agent="greeter")
    note("dan", "known")
    change_policy(ann, failure_threshold=7)
    text = client.get(f"/ops/audit/?{query}").text
    assert set(re.findall(r'"\?actor=([^"]+)"', text)) == shown


@pytest.mark.parametrize("query", ["kind=nonsense", "after=x", "older=x", "older=2026-01-01~0~1"])
def test_what_makes_no_sense_is_said_so(client, query):
    response = client.get(f"/ops/audit/?{query}")
    assert response.status_code == 400
    assert 'class="errors"' in response.text


def test_pages_follow_each_other_both_ways_whatever_the_source(client, ann):
    count = PAGE + 20
    for number in range(count // 2):
        Event.objects.create(kind=EventKind.HELD, actor="bob", reason=f"because of {number}")
        change_policy(ann, window=number + 101)
    first = client.get("/ops/audit/").text
    rows = r'"\?actor=[^"]+".*?<td>([A-Z][^<]*)</td>.*?</tr>'
    numbers = r"line-\d-\d+|because of \d+|→ <ins>\d+"
    seen_first = re.findall(numbers, first)
    older = re.search(r'rel="next" href="(\?[^"]+)"', first)[1].replace("&amp;", "&")
    second = client.get(f"/ops/audit/{older}").text
    assert not set(seen_first) & set(re.findall(numbers, second))
    together = len(re.findall(rows, first, re.DOTALL)) + len(re.findall(rows, second, re.DOTALL))
    assert together == count // 2 * 2
    newer = re.search(r'rel="prev" href="(\?[^"]+)"', second)[1].replace("&amp;", "&")
    assert re.findall(numbers, client.get(f"/ops/audit/{newer}").text) == seen_first


def test_what_is_new_is_offered_and_pushes_nothing(client):
    Event.objects.create(kind=EventKind.HELD, actor="bob", reason="first")
    address = re.findall(r'hx-get="([^"]+)"', client.get("/ops/audit/").text)[0]
    Event.objects.create(kind=EventKind.HELD, actor="bob", reason="second")
    polled = client.get(address.replace("&amp;", "&"), headers=POLL).text
    assert "1 new: show" in polled
    assert "first" in polled
    assert "second" not in polled


def test_it_costs_the_same_with_two_acts_and_with_forty(client, ann):
    def cost():
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/ops/audit/").status_code == 200
        return len(queries)

    def both(number):
        press(client, in_error(new_task()))
        change_policy(ann, window=number + 101)

    both(0)
    both(1)
    with_two = cost()
    for number in range(2, 20):
        both(number)
    assert cost() == with_two
    assert with_two <= 22
