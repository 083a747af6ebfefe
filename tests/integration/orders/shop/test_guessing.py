"""Guesses at passwords are limited by network and by name, and lock no owner out."""

import pytest
from django.test import Client

from orders import devices
from sasweb import login
from tests.support.operators import person

pytestmark = pytest.mark.django_db
FORMS = {"/account/sign-in/": "email", "/login/": "username"}
WRONG = {"/account/sign-in/": 422, "/login/": 200}
NAME, PASSWORD = "ada@example.org", "correct horse"


@pytest.fixture(params=FORMS)
def form(request):
    person(NAME)
    person("eve@example.org")
    return request.param


def attempt(form, client, password="wrong", name=NAME):
    return client.post(form, {FORMS[form]: name, "password": password}).status_code


def addresses(count):
    """Yield browsers, each at an address in a network of its own."""
    for number in range(count):
        yield Client(REMOTE_ADDR=f"2001:db8:0:{number:x}::1")


def network(count):
    """Yield browsers at addresses of one network."""
    for number in range(count):
        yield Client(REMOTE_ADDR=f"2001:db8:1:1::{number + 1:x}")


def test_addresses_of_one_network_count_as_one(form):
    answers = [attempt(form, client) for client in network(12)]
    assert answers == [WRONG[form]] * 9 + [429] * 3
    assert attempt(form, Client(REMOTE_ADDR="2001:db8:1:2::1")) == WRONG[form]


@pytest.fixture
def _few(monkeypatch):
    monkeypatch.setattr(devices, "TRIES", devices.Limit("name", most=5, seconds=3600))
    monkeypatch.setattr(login, "NAMES", devices.Limit("staff-name", most=5, seconds=3600))


@pytest.mark.usefixtures("_few")
def test_name_is_limited_over_all_addresses(form):
    names = [NAME, NAME.upper(), f" {NAME}"] * 3
    tries = zip(addresses(9), names, strict=True)
    answers = [attempt(form, client, name=name) for client, name in tries]
    assert answers == [WRONG[form]] * 5 + [429] * 4
    assert attempt(form, Client(REMOTE_ADDR="192.0.2.1"), PASSWORD) == 429
    assert attempt(form, Client(REMOTE_ADDR="192.0.2.1"), name="eve@example.org") == WRONG[form]


@pytest.mark.usefixtures("_few")
def test_owner_signs_in_where_they_did_before_while_others_guess(form):
    home = Client(REMOTE_ADDR="192.0.2.1")
    assert attempt(form, home, PASSWORD) in {302, 303}
    home.post("/logout/")
    for client in addresses(9):
        attempt(form, client)
    assert attempt(form, home, PASSWORD) in {302, 303}
    assert attempt(form, Client(REMOTE_ADDR="192.0.2.1"), PASSWORD) == 429


@pytest.mark.usefixtures("_few")
def test_cookie_of_another_account_does_not_help(form):
    eve = Client(REMOTE_ADDR="192.0.2.1")
    assert attempt(form, eve, PASSWORD, name="eve@example.org") in {302, 303}
    (value,) = [cookie.value for name, cookie in eve.cookies.items() if name.startswith("device_")]
    eve.cookies[devices._cookie(NAME)] = value
    assert [attempt(form, eve) for _ in range(6)] == [WRONG[form]] * 5 + [429]


def test_cookie_names_no_account_and_is_closed_to_scripts(form, settings):
    settings.SESSION_COOKIE_SECURE = True
    client = Client()
    attempt(form, client, PASSWORD)
    ((name, cookie),) = [item for item in client.cookies.items() if item[0].startswith("device_")]
    assert NAME not in name + cookie.value
    assert (cookie["httponly"], cookie["secure"], cookie["samesite"]) == (True, True, "Lax")
