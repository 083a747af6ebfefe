"""Sessions of staff end by idleness and by age; customers' do not, and polls keep none alive."""

import pytest
from django.test import Client

from sasweb.staff import sessions
from tests.support.operators import browser, person
from tests.support.page import POLL, page, poll_of
from tests.support.second_factor import log_in

pytestmark = pytest.mark.django_db
MINUTE = 60


@pytest.fixture
def clock(monkeypatch):
    """The clock of the sessions; call it to move it on by seconds."""

    class Clock:
        now = 1_800_000_000.0

        def time(self):
            return self.now

        def __call__(self, seconds):
            self.now += seconds

    clock = Clock()
    monkeypatch.setattr(sessions, "time", clock)
    return clock


@pytest.fixture(autouse=True)
def _limits(settings):
    settings.STAFF_IDLE_MINUTES, settings.STAFF_SESSION_HOURS = 30, 12


@pytest.fixture
def ada():
    return person("ada", "operate", "resubmit")


def test_session_ends_after_idleness_and_says_so(ada, clock):
    client, _ = log_in(ada)
    for _ in range(3):
        clock(29 * MINUTE)
        assert client.get("/ops/agents/").status_code == 200
    clock(31 * MINUTE)
    answer = client.get("/ops/agents/?x=1")
    assert answer["Location"] == "/login/?next=%2Fops%2Fagents%2F%3Fx%3D1&ended=1"
    assert page(client.get(answer["Location"])).only('[data-ended="page"]')
    assert "_auth_user_id" not in client.session
    client, answer = log_in(ada, client=client, to="/ops/agents/?x=1")
    assert answer["Location"] == "/ops/agents/?x=1"
    assert client.get("/ops/agents/").status_code == 200


def test_polls_keep_no_session_alive(ada, clock):
    client, _ = log_in(ada)
    poll = poll_of(client.get("/ops/agents/"))
    for _ in range(3):
        clock(9 * MINUTE)
        assert client.get(poll, headers=POLL).status_code in {200, 204}
    clock(4 * MINUTE)
    assert client.get(poll, headers=POLL).status_code == 401
    assert client.get("/ops/").status_code == 302


def test_each_answer_says_how_long_the_session_lasts(ada, clock, settings):
    client, _ = log_in(ada)
    poll = poll_of(client.get("/ops/agents/"))
    clock(29 * MINUTE)
    assert client.get(poll, headers=POLL)["Session-Seconds"] == "60"
    assert client.head("/ops/agents/")["Session-Seconds"] == "1800"
    settings.STAFF_IDLE_MINUTES = settings.STAFF_SESSION_HOURS = 0
    assert "Session-Seconds" not in client.get(poll, headers=POLL)


def test_acts_and_parts_that_a_person_opens_keep_it_alive(ada, clock):
    client, _ = log_in(ada)
    for ask in (client.get, client.post):
        clock(29 * MINUTE)
        ask("/ops/holds/new/?agent=greeter", headers=POLL)
    clock(29 * MINUTE)
    assert client.get("/ops/").status_code == 200


def test_session_ends_by_its_age_however_it_is_used(ada, clock):
    client, _ = log_in(ada)
    assert client.session.get_expiry_age() == 12 * 3600
    for _ in range(24):
        clock(29 * MINUTE)
        assert client.get("/ops/runbook/").status_code == 200
    clock(25 * MINUTE)
    assert client.get("/ops/runbook/").status_code == 302
    assert client.get("/ops/runbook/").status_code == 302


def test_session_from_before_counts_from_its_first_page(ada, clock):
    client = browser(ada)
    assert client.get("/ops/").status_code == 200
    clock(31 * MINUTE)
    assert client.get("/ops/").status_code == 302


def test_second_login_begins_anew(ada, clock):
    client, _ = log_in(ada)
    for _ in range(25):
        clock(28 * MINUTE)
        assert client.get("/ops/runbook/").status_code == 200
    log_in(ada, client=client)
    clock(28 * MINUTE)
    assert client.get("/ops/runbook/").status_code == 200


def test_session_is_written_once_a_minute(ada, clock, django_assert_num_queries):
    client, _ = log_in(ada)
    clock(61)
    client.get("/ops/runbook/")
    written = client.session[sessions.KEY]["seen"]
    clock(30)
    client.get("/ops/runbook/")
    assert client.session[sessions.KEY]["seen"] == written
    clock(31)
    client.get("/ops/runbook/")
    assert client.session[sessions.KEY]["seen"] == clock.now


@pytest.mark.parametrize("door", ["/login/", "/account/sign-in/"])
def test_customers_sessions_last(clock, door):
    person("eve@example.org")
    client = Client()
    name = {"username": "eve@example.org", "email": "eve@example.org"}
    client.post(door, {**name, "password": "correct horse"})
    clock(13 * 86_400)
    assert client.get("/ops/").status_code == 403
    assert client.get("/account/").status_code == 200
    assert sessions.KEY not in client.session
    assert client.session.get_expiry_age() == 14 * 86_400


def test_no_end_of_its_own_where_none_is_set(ada, clock, settings):
    settings.STAFF_IDLE_MINUTES = settings.STAFF_SESSION_HOURS = 0
    client, _ = log_in(ada)
    clock(13 * 86_400)
    assert client.get("/ops/").status_code == 200
