"""Accounts and orders are found in every form that their address and password are typed in."""

import unicodedata

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orders.lifecycle.access import link
from orders.lifecycle.numbers import order_number
from orders.models import Order
from tests.support.customers import link_to
from tests.support.shop import fill_cart, open_checkout, order_in, placed, products, send

pytestmark = pytest.mark.django_db
WORDS = "correct hörse"
UP, IN = "/account/sign-up/", "/account/sign-in/"
FORMS = ("ada@bücher.example", "ada@bu\u0308cher.example", "ADA@xn--bcher-kva.example")


def sign_up(email, password=WORDS):
    return Client().post(UP, {"email": email, "password": password, "again": password})


def customer_of(email, password=WORDS):
    sign_up(email, password)
    Client().post(link_to(email))


def sign_in(email, password=WORDS):
    return Client().post(IN, {"email": email, "password": password}).status_code


@pytest.mark.parametrize("first", FORMS)
def test_address_in_any_form_is_one_account(first):
    customer_of(first)
    assert [sign_in(form) for form in FORMS] == [303] * 3
    assert [sign_up(form, "another one").status_code for form in FORMS] == [303] * 3
    assert [sign_in(form) for form in FORMS] == [303] * 3
    assert User.objects.count() == 1


def test_account_of_a_former_release_with_an_ascii_domain_signs_in():
    User.objects.create_user("ada@xn--bcher-kva.example", password=WORDS)
    assert [sign_in(form) for form in FORMS] == [303] * 3


def test_account_made_in_the_admin_signs_in_in_any_case():
    User.objects.create_user("Kate@Example.org", password=WORDS)
    assert [sign_in(form) for form in ("Kate@Example.org", "kate@example.org")] == [303] * 2
    sign_up("kate@example.org", "another one")
    assert sign_in("kate@example.org") == 303
    assert User.objects.count() == 1


def test_address_that_is_too_long_as_a_name_is_refused():
    email = f"a1@{'.'.join(['ﬀ' * 30] * 3)}.de"
    assert sign_up(email).status_code == 422


def test_password_in_either_form_signs_in_also_an_old_one():
    typed = [unicodedata.normalize(form, WORDS) for form in ("NFC", "NFD")]
    customer_of("ada@example.org", typed[1])
    assert [sign_in("ada@example.org", password) for password in typed] == [303] * 2
    User.objects.create_user("old@example.org", password=typed[1])
    assert sign_in("old@example.org", typed[1]) == 303


def test_order_is_found_by_its_address_in_either_form():
    products()
    client = Client()
    order = placed(client)
    Order.objects.update(email=FORMS[1])
    for form in FORMS:
        asked = {"number": f"#{order_number(order)}.", "email": form}
        assert Client().post("/orders/find/", asked)["Location"] == link(order)


def test_total_above_what_can_be_paid_is_refused_at_the_checkout():
    products()[0].__class__.objects.update(price=1_000_000)
    client = Client()
    fill_cart(client, sku_0=99)
    assert order_in(send(client, open_checkout(client)))
    fill_cart(client, sku_0=99, sku_1=1)
    refused = send(client, open_checkout(client))
    assert refused.status_code == 422
    assert "€999,999.99" in refused.text
