"""Addresses of accounts are confirmed by a letter, which is also what an address with an account gets."""

import re

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

from orchestration import submission
from orders.models import Order
from orders.rate_limit import Limit
from orders.shop import account_letters, confirmations
from tests.support.customers import confirmed, customer, link_to
from tests.support.operators import person
from tests.support.page import page
from tests.support.shop import buy, products, without_input

pytestmark = pytest.mark.django_db
EMAIL, PASSWORD = "ada@example.org", "correct horse"


def sign_up(email=EMAIL, password=PASSWORD, client=None, **headers):
    sent = {"email": email, "password": password, "again": password}
    answer = (client or Client(headers=headers)).post("/account/sign-up/", sent)
    account_letters._threads().submit(int).result(timeout=20)
    return answer


def sign_in(client=None, email=EMAIL, password=PASSWORD):
    client = client or Client()
    answer = client.post("/account/sign-in/", {"email": email, "password": password})
    account_letters._threads().submit(int).result(timeout=20)
    return answer


def link():
    """Return the path in the last letter."""
    return re.search(r"http://localhost:\d+(/\S+)", mail.outbox[-1].body)[1]


def test_letter_has_the_link_to_this_site(settings):
    sign_up("Ada@Example.org")
    (letter,) = mail.outbox
    assert letter.to == ["Ada@example.org"]
    assert settings.SITE_URL in letter.body
    assert link() == link_to(EMAIL)
    client = Client()
    assert client.post(link())["Location"] == "/account/sign-in/"
    assert EmailAddress.objects.get().verified
    assert client.get("/account/").status_code == 302  # another browser is not signed in by a link
    assert sign_in(client)["Location"] == "/account/"


def test_letter_is_in_the_customers_language():
    sign_up(**{"Accept-Language": "de"})
    assert "E-Mail-Adresse" in mail.outbox[0].subject


@pytest.mark.parametrize("known", ["confirmed", "made by an administrator"])
def test_answer_is_the_same_for_an_address_with_an_account(known):
    if known == "confirmed":
        confirmed(EMAIL)
    else:
        person(EMAIL, email=EMAIL)
    clients = Client(), Client()
    emails = EMAIL.upper(), "new@example.org"
    answers = [
        sign_up(email, "another one", who) for email, who in zip(emails, clients, strict=True)
    ]
    assert [(answer.status_code, answer["Location"]) for answer in answers] == [
        (303, "/account/check-mail/")
    ] * 2
    shown, other = (without_input(who.get("/account/check-mail/").text) for who in clients)
    assert shown == other
    assert clients[0].cookies.keys() == clients[1].cookies.keys()
    assert [letter.to for letter in mail.outbox] == [[EMAIL], ["new@example.org"]]
    assert "/account/confirm/" not in mail.outbox[0].body
    assert User.objects.get(username=EMAIL).check_password(PASSWORD)
    assert clients[0].get("/account/").status_code == 302


def test_account_that_is_not_confirmed_lets_no_one_in_and_another_letter_comes():
    sign_up()
    client = Client()
    answer = sign_in(client)
    assert answer["Location"] == "/account/check-mail/"
    assert client.get("/account/").status_code == 302
    assert len(mail.outbox) == 2
    assert sign_in(password="wrong").status_code == 422
    assert len(mail.outbox) == 2
    client.post(link())
    assert sign_in(client)["Location"] == "/account/"


def test_second_sign_up_makes_the_first_link_worthless():
    """Otherwise who signs up first for another's address would know the password."""
    sign_up(password="of a stranger")
    first = link()
    sign_up()
    assert page(Client().get(first)).only('[data-link="ended"]')
    Client().post(first)
    assert not EmailAddress.objects.get().verified
    Client().post(link())
    assert EmailAddress.objects.get().verified
    assert sign_in(password="of a stranger").status_code == 422
    assert sign_in().status_code == 303


def test_link_is_good_once_and_for_its_time(monkeypatch):
    sign_up()
    address = link()
    monkeypatch.setattr(confirmations, "LIFE", -1)
    assert page(Client().get(address)).only('[data-link="ended"]')
    monkeypatch.setattr(confirmations, "LIFE", 60)
    assert Client().post(address).status_code == 303
    for used in (address, "/account/confirm/x/", "/account/confirm/WzEsMl0:x:y/"):
        assert page(Client().post(used)).only('[data-link="ended"]')


def test_letters_to_one_address_are_limited(monkeypatch):
    monkeypatch.setattr(confirmations, "LETTERS", Limit("confirm-letter", most=2, seconds=60))
    for _ in range(4):
        assert sign_up().status_code == 303
    assert len(mail.outbox) == 2


def test_letter_that_fails_fails_no_page(settings, caplog):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    assert sign_up().status_code == 303
    assert "not sent" in caplog.text
    assert "ada@" not in caplog.text


def test_orders_of_a_guest_join_once_the_address_is_confirmed():
    products()
    mine, taken = buy(Client(), sku_0=1), buy(customer("eve@example.org"), sku_0=1)
    submission.take(100)
    Order.objects.filter(id=mine).update(email="ADA@Example.org")
    other = Order.objects.exclude(id__in=[mine, taken])
    assert not other.exists()
    client = Client()
    sign_up(client=client)
    assert Order.objects.get(id=mine).customer is None
    client.post(link())
    assert Order.objects.get(id=mine).customer == User.objects.get(username=EMAIL)
    assert Order.objects.get(id=taken).customer.username == "eve@example.org"
    assert f"/orders/{mine}/" in client.get("/account/").text


def test_orders_of_a_guest_join_no_account_by_its_name_alone():
    products()
    order = buy(Client(), sku_0=1)
    submission.take(100)
    confirmed("bob@example.org")
    person(EMAIL, email=EMAIL)
    sign_in()
    assert Order.objects.get(id=order).customer is None


def test_account_that_is_switched_off_is_not_confirmed():
    sign_up()
    User.objects.update(is_active=False)
    assert page(Client().post(link())).only('[data-link="ended"]')
    assert not EmailAddress.objects.get().verified
