"""Customers' accounts: made, entered, looked after, and throttled."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from orchestration import submission
from orders import accounts
from orders.access import link
from orders.models import Order, Placement, Profile, Throttle
from orders.throttle import Limit
from tests.shop import DETAILS, buy, fill_cart, products

pytestmark = pytest.mark.django_db
GOOD = {"email": "Ada@Example.org", "password": "correct horse", "again": "correct horse"}


def sign_up(client=None, **changes):
    client = client or Client()
    return client, client.post("/account/sign-up/", {**GOOD, **changes})


def sign_in(client, **changes):
    return client.post(
        "/account/sign-in/", {"email": GOOD["email"], "password": GOOD["password"], **changes}
    )


def text(response):
    return response.content.decode()


def signed_in(client):
    return client.get("/account/").status_code == 200


def test_signing_up_makes_an_account_and_enters_it():
    client, response = sign_up()
    assert (response.status_code, response["Location"]) == (303, "/account/")
    page = text(client.get("/account/"))
    assert "Your account is made" in page
    assert "Ada@example.org" in page
    user = User.objects.get()
    assert (user.username, user.email) == ("ada@example.org", "Ada@example.org")
    assert not user.is_staff
    assert client.get("/ops/").status_code == 403


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"email": "nobody"}, "This is not an e-mail address"),
        ({"email": ""}, "Please enter your e-mail address"),
        ({"email": "a" * 150 + "@b.org"}, "at most 150 characters"),
        ({"password": "short", "again": "short"}, "too short"),
        ({"password": "password", "again": "password"}, "too common"),
        ({"again": "another one"}, "not the same password"),
        ({"password": ""}, "Please choose a password"),
        ({"password": "x" * 5000, "again": "x" * 5000}, "at most 4096 characters"),
        ({"password": "null\0null", "again": "null\0null"}, "Null characters"),
    ],
)
def test_what_makes_no_account(changes, says):
    client, response = sign_up(**changes)
    page = text(response)
    assert response.status_code == 422
    assert says in page
    assert 'class="errors"' in page
    assert "<title>Error: " in page
    assert not User.objects.exists()
    assert not signed_in(client)
    if "email" not in changes:
        assert 'value="Ada@Example.org"' in page
    assert "correct horse" not in page  # a password is never sent back


def test_an_address_has_one_account_however_it_is_written():
    sign_up()
    client, response = sign_up(email="ADA@example.ORG", password="another one", again="another one")
    assert response.status_code == 422
    assert "sign in instead" in text(response)
    assert not signed_in(client)
    assert User.objects.get().check_password("correct horse")


def test_one_enters_with_any_capitals_and_leaves_again():
    sign_up()
    client = Client()
    response = sign_in(client, email=" ADA@EXAMPLE.ORG ")
    assert (response.status_code, response["Location"]) == (303, "/account/")
    assert signed_in(client)
    client.post("/logout/")
    assert not signed_in(client)


def test_a_wrong_password_and_an_unknown_address_get_one_answer():
    sign_up()
    answers = {
        re.sub(r'value="[^"]*"|X-CSRFToken[^}]*', "", text(sign_in(Client(), **wrong)))
        for wrong in ({"password": "wrong"}, {"email": "bob@example.org"})
    }
    assert len(answers) == 1
    assert "is wrong" in answers.pop()


def test_guessing_passwords_is_stopped_and_then_the_right_one_does_not_help(settings):
    settings.AXES_FAILURE_LIMIT = 3
    sign_up()
    client = Client()
    assert [sign_in(client, password="wrong").status_code for _ in range(4)] == [422, 422, 429, 429]
    assert sign_in(client).status_code == 429
    assert "Too many wrong passwords" in text(sign_in(client))
    assert not signed_in(client)


@pytest.mark.parametrize("path", ["/account/sign-in/", "/account/sign-up/"])
@pytest.mark.parametrize(
    ("asked", "led"),
    [
        ("/checkout/", "/checkout/"),
        ("https://evil.example/", "/account/"),
        ("//evil.example/", "/account/"),
        ("/\\evil.example/", "/account/"),
        ("javascript:alert(1)", "/account/"),
        ("evil", "/account/"),
    ],
)
def test_it_leads_on_within_the_shop_only(path, asked, led):
    if "sign-in" in path:
        accounts.open_account(GOOD["email"], GOOD["password"])
    client = Client()
    shown = text(client.get(path, {"next": asked}))
    assert (f'name="next" value="{asked}"' in shown) == (asked == led)
    response = client.post(path, {**GOOD, "next": asked})
    assert response["Location"] == led


@pytest.mark.parametrize("path", ["", "address/", "password/"])
def test_an_account_is_for_its_customer(path):
    response = Client().get(f"/account/{path}")
    assert response.status_code == 302
    assert response["Location"] == f"/account/sign-in/?next=/account/{path}"


def test_the_cart_comes_along_into_the_account():
    products()
    accounts.open_account(GOOD["email"], GOOD["password"])
    client = Client()
    fill_cart(client, sku_0=2)
    before = client.session.session_key
    sign_in(client)
    assert client.session.session_key != before
    assert "€20.00" in text(client.get("/cart/"))


def test_changing_the_password_ends_the_other_sessions():
    client, _ = sign_up()
    other = Client()
    sign_in(other)
    new = {"old": "correct horse", "password": "battery staple", "again": "battery staple"}
    wrong = client.post("/account/password/", {**new, "old": "wrong"})
    assert wrong.status_code == 422
    assert "This is not your present password" in text(wrong)
    assert client.post("/account/password/", new).status_code == 303
    assert signed_in(client)
    assert not signed_in(other)
    assert sign_in(Client()).status_code == 422
    assert sign_in(Client(), password="battery staple").status_code == 303


def test_the_present_password_cannot_be_guessed_from_an_open_session():
    client, _ = sign_up()
    answers = [
        client.post("/account/password/", {"old": str(number)}).status_code for number in range(11)
    ]
    assert answers == [422] * 10 + [429]


def test_few_accounts_are_made_from_one_place():
    for number in range(20):
        sign_up(
            email=f"a{number}@example.org", again="a typing error"
        )  # tells nothing, costs nothing
        assert sign_up(email=f"a{number}@example.org")[1].status_code == 303
    _, response = sign_up(email="one@more.org")
    assert response.status_code == 429
    assert response["Retry-After"] == "3600"
    assert "Please wait 60 minutes" in text(response)
    assert 'value="one@more.org"' in text(response)
    assert User.objects.count() == 20
    elsewhere = Client(REMOTE_ADDR="192.0.2.1")
    assert sign_up(elsewhere, email="one@more.org")[1].status_code == 303


def test_looking_for_orders_is_throttled():
    guess = {"number": "00000-00000", "email": "ada@example.org"}
    answers = [Client().post("/orders/find/", guess).status_code for _ in range(31)]
    assert answers == [422] * 30 + [429]


def test_a_throttle_counts_anew_when_its_time_has_come():
    limit = Limit("test", most=2, seconds=60)
    assert [limit.allows("ada") for _ in range(3)] == [True, True, False]
    assert limit.allows("bob")
    assert not Throttle.objects.filter(key__contains="ada").exists()
    Throttle.objects.update(until=timezone.now() - timedelta(minutes=5))
    assert limit.allows("ada")
    assert limit.allows("cleo")  # a new count forgets what has run out
    assert Throttle.objects.count() == 2


def test_a_clock_that_is_set_back_locks_no_one_out():
    limit = Limit("test", most=1, seconds=60)
    assert [limit.allows("ada") for _ in range(2)] == [True, False]
    Throttle.objects.update(until=timezone.now() + timedelta(hours=1))
    assert [limit.allows("ada") for _ in range(2)] == [True, False]


def test_what_is_ordered_while_signed_in_is_in_the_account():
    products()
    guest = Client()
    as_guest = buy(guest, sku_0=1)
    client, _ = sign_up()
    assert "You have not ordered with this account yet" in text(client.get("/account/"))
    order = buy(client, sku_0=2)
    assert Placement.objects.get(order=order).customer.username == "ada@example.org"
    waiting = text(client.get("/account/"))
    assert f"/orders/{order}/" in waiting  # placed, and not taken yet
    submission.take(100)
    page = text(client.get("/account/"))
    assert f"/orders/{order}/" in page
    assert "€20.00" in page
    assert str(as_guest) not in page  # though it was sent to the same address
    assert "Lovelace" in text(Client().get(link(as_guest)))


def past_orders(customer, count):
    return Order.objects.bulk_create(
        Order(
            id=uuid4(), number=f"N{number:04}", customer=customer, total=100, currency="EUR",
            country="CH", payment_method="pm_card_visa",
        )
        for number in range(count)
    )  # fmt: skip


def test_past_orders_come_in_pages_without_gap_or_repetition():
    client, _ = sign_up()
    ada, bob = User.objects.get(), User.objects.create_user("bob")
    mine, theirs = past_orders(ada, 45), past_orders(bob, 3)
    address, shown, sizes = "/account/", [], []
    while address:
        page = text(client.get(address))
        found = re.findall(r">(N\d{4})<", page)
        sizes.append(len(found))
        shown += found
        older = re.search(r'href="(\?before=[^"]+)"', page)
        address = older and "/account/" + older[1]
    assert sizes == [20, 20, 5]
    assert sorted(shown) == sorted(order.number for order in mine)
    for before in (theirs[0].id, uuid4(), "x", "'"):  # not one of mine: the first page
        assert text(client.get(f"/account/?before={before}")).count("Order </span>N") == 20


@pytest.mark.parametrize("count", [1, 15])
def test_an_account_takes_few_queries_however_many_orders(django_assert_max_num_queries, count):
    client, _ = sign_up()
    past_orders(User.objects.get(), count)
    client.get("/account/")
    with django_assert_max_num_queries(6):  # session, user, orders, placements, profile, last order
        client.get("/account/")


def test_the_checkout_is_filled_in_from_the_account():
    products()
    client, _ = sign_up()
    fill_cart(client, sku_0=1)
    assert 'value="Ada@example.org"' in text(client.get("/checkout/"))
    address = {name: DETAILS[name] for name in ("name", "street", "postcode", "city", "country")}
    response = client.post("/account/address/", {**address, "street": ""})
    assert response.status_code == 422
    assert "Please tell us the street" in text(response)
    assert client.post("/account/address/", address).status_code == 303
    assert client.post("/account/address/", {**address, "city": "Bern"}).status_code == 303
    assert Profile.objects.get().city == "Bern"
    page = text(client.get("/checkout/"))
    for value in ("Ada Lovelace", "Rue de Lyon 12", "Bern"):
        assert f'value="{value}"' in page
    assert '<option value="CH" selected>' in page


def test_without_an_address_of_its_own_the_last_order_serves():
    products()
    client, _ = sign_up()
    buy(client)
    submission.take(100)
    fill_cart(client, sku_0=1)
    assert 'value="Rue de Lyon 12"' in text(client.get("/checkout/"))
    assert "Genève<br>Switzerland</p>" in text(client.get("/account/"))


def test_a_customer_may_vanish_and_the_orders_stay():
    products()
    client, _ = sign_up()
    order = buy(client)
    submission.take(100)
    User.objects.all().delete()
    assert Order.objects.get().customer is None
    assert Client().get(link(order)).status_code == 200


@pytest.mark.parametrize("path", ["sign-in/", "sign-up/", "", "address/", "password/"])
def test_account_pages_are_kept_by_nobody(path):
    client, _ = sign_up()
    response = client.get(f"/account/{path}")
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert 'style="' not in text(response)


def test_fields_say_what_browsers_may_fill_in():
    client, _ = sign_up()
    for path, expected in {
        "sign-in/": ["username", "current-password"],
        "sign-up/": ["username", "new-password", "new-password"],
        "password/": ["username", "current-password", "new-password", "new-password"],
        "address/": ["name", "street-address", "postal-code", "address-level2", "country"],
    }.items():
        page = text(client.get(f"/account/{path}"))
        assert re.findall(r'autocomplete="([^"]+)"', page) == expected


def test_forms_need_their_token():
    strict = Client(enforce_csrf_checks=True)
    for path in ("sign-in/", "sign-up/"):
        assert strict.post(f"/account/{path}", GOOD).status_code == 403
