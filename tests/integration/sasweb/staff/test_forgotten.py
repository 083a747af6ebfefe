"""Forgotten passwords: a letter with a link, for customers in the shop and for staff at their login."""

import re

import pytest
from django.core import mail
from django.test import Client

from orders.rate_limit import Limit
from orders.shop import account_letters
from orders.shop.views import forgotten
from tests.support.operators import person
from tests.support.page import page
from tests.support.second_factor import log_in, with_app

# the letter is written in another thread, which sees what is committed
pytestmark = pytest.mark.django_db(transaction=True)
SHOP, STAFF = "/account/forgotten/", "/login/forgotten/"
NEW = "a longer way round"


@pytest.fixture(autouse=True)
def _ada():
    person("ada@example.org", email="ada@example.org")
    person("olga", "operate", email="Olga@example.org")
    person("eve", email="eve@example.org")


def ask(door, email, client=None, **headers):
    """Ask for a letter; return the answer, once it is known whether a letter was written."""
    client = client or Client()
    answer = client.post(door, {"email": email}, headers=headers)
    settled()
    return answer


def settled():
    """Wait until the thread of the letters has done all that was asked for before."""
    account_letters._threads().submit(int).result(timeout=20)


def link():
    """Return the address in the last letter."""
    return re.search(r"http://localhost:\d+(/\S+)", mail.outbox[-1].body)[1]


def set_password(address, password=NEW, client=None):
    client = client or Client()
    form = client.get(address, follow=True)
    path = form.request["PATH_INFO"]
    return form, client.post(path, {"password": password, "again": password})


@pytest.mark.parametrize(
    ("door", "email", "name"),
    [(SHOP, " ADA@example.org", "ada@example.org"), (STAFF, "olga@example.org", "olga")],
)
def test_letter_leads_to_a_new_password_and_ends_all_sessions(door, email, name):
    client = Client()
    client.post("/login/", {"username": name, "password": "correct horse"})
    inside = "/account/"
    assert client.get(inside).status_code == 200
    assert page(ask(door, email)).only("[data-sent]")
    (letter,) = mail.outbox
    assert [receiver.lower() for receiver in letter.to] == [email.strip().lower()]
    assert name in letter.body
    address = link()
    form, done = set_password(address)
    assert address.split("/")[-2] not in form.request["PATH_INFO"]  # the key is in no Referer
    assert done.status_code == 302
    assert client.get(inside).status_code == 302
    assert log_in_by(name, "correct horse") == 200
    assert log_in_by(name, NEW) == 302
    used, _ = set_password(address)
    assert page(used).only('[data-link="ended"]')


def log_in_by(name, password):
    return Client().post("/login/", {"username": name, "password": password}).status_code


def test_link_ends_with_its_time(settings):
    ask(SHOP, "ada@example.org")
    settings.PASSWORD_RESET_TIMEOUT = -1
    form, refused = set_password(link())
    assert page(form).only('[data-link="ended"]')
    assert refused.status_code == 200
    assert log_in_by("ada@example.org", "correct horse") == 302


def test_weak_password_is_refused():
    ask(SHOP, "ada@example.org")
    _, refused = set_password(link(), "ada@example.org")
    assert refused.status_code == 422
    assert refused.context["form"].has_error("password", "password_too_similar")


@pytest.mark.parametrize(
    ("door", "email"),
    [(SHOP, "who@example.org"), (SHOP, "olga@example.org"), (STAFF, "who@example.org"),
     (STAFF, "ada@example.org"), (STAFF, "eve@example.org")],
)  # fmt: skip
def test_answer_is_the_same_for_an_address_without_such_an_account(door, email):
    known = {SHOP: "ada@example.org", STAFF: "olga@example.org"}[door]
    answers = [without_token(ask(door, address).text) for address in (email, known)]
    assert answers[0] == answers[1]
    assert [letter.to[0].lower() for letter in mail.outbox] == [known]


def without_token(html):
    return re.sub(r"csrfmiddlewaretoken\" value=\"\w+|X-CSRFToken\": \"\w+", "", html)


def test_answer_does_not_wait_for_the_letter():
    """The pool's only thread is busy, and the answer is there."""
    from threading import Event

    go = Event()
    account_letters._threads().submit(go.wait, 20)
    try:
        assert Client().post(SHOP, {"email": "ada@example.org"}).status_code == 200
        assert mail.outbox == []
    finally:
        go.set()
    settled()
    assert len(mail.outbox) == 1


def test_account_without_password_or_address_gets_no_letter():
    from django.contrib.auth.models import User

    olga = User.objects.get(username="olga")
    olga.set_unusable_password()
    olga.save()
    person("otto", "operate")
    for email in ("olga@example.org", ""):
        ask(STAFF, email)
    User.objects.filter(username="ada@example.org").update(is_active=False)
    ask(SHOP, "ada@example.org")
    assert mail.outbox == []


def test_letters_to_one_address_and_asks_from_one_network_are_limited(monkeypatch):
    monkeypatch.setattr(account_letters, "LETTERS", Limit("password-letter", most=2, seconds=60))
    monkeypatch.setattr(forgotten, "ASKS", Limit("forgotten", most=4, seconds=60))
    answers = [ask(SHOP, "Ada@example.org").status_code for _ in range(5)]
    assert answers == [200] * 4 + [429]
    assert len(mail.outbox) == 2


def test_letter_that_fails_fails_no_page(settings, caplog):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    assert page(ask(SHOP, "ada@example.org")).only("[data-sent]")
    assert "not sent" in caplog.text
    assert "ada@" not in caplog.text


def test_link_is_to_this_site_if_another_host_is_named(settings):
    settings.ALLOWED_HOSTS = ["*"]
    ask(SHOP, "ada@example.org", Host="evil.example")
    assert "evil.example" not in mail.outbox[0].body
    assert settings.SITE_URL in mail.outbox[0].body


def test_letter_is_in_the_customers_language():
    ask(SHOP, "ada@example.org", client=Client(headers={"Accept-Language": "de"}))
    assert "Passwort" in mail.outbox[0].subject


def test_second_factor_is_asked_for_after_a_new_password():
    from django.contrib.auth.models import User

    olga = User.objects.get(username="olga")
    app = with_app(olga)
    ask(STAFF, "olga@example.org")
    client = Client()
    set_password(link(), "correct horse", client)
    assert client.get("/ops/").status_code == 302
    client, _ = log_in(olga)
    assert client.get("/ops/")["Location"].startswith("/login/code/")
    assert client.post("/login/code/", {"code": app.code()}).status_code == 303


def test_pages_link_to_each_other():
    for login, door in (("/account/sign-in/", SHOP), ("/login/", STAFF)):
        assert page(Client().get(login)).only(f'a[href="{door}"]')
