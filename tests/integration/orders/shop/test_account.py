"""Customers' accounts: sign-up, sign-in, orders, address, password, and rate limits."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from orchestration import submission
from orders.lifecycle.access import link
from orders.models import Order, Placement, Profile, Throttle
from orders.rate_limit import Limit
from orders.shop.views.account import SIGN_UPS
from tests.support.customers import confirmed, link_to
from tests.support.page import page as page_of
from tests.support.shop import DETAILS, buy, fill_cart, products, without_input

pytestmark = pytest.mark.django_db
GOOD = {"email": "Ada@Example.org", "password": "correct horse", "again": "correct horse"}


def ask(client=None, **changes):
    client = client or Client()
    return client, client.post("/account/sign-up/", {**GOOD, **changes})


def sign_up():
    """Create an account, confirm its address, and be signed in."""
    client, asked = ask()
    return client, client.post(link_to(GOOD["email"])) if asked.status_code == 303 else asked


def sign_in(client, **changes):
    return client.post(
        "/account/sign-in/", {"email": GOOD["email"], "password": GOOD["password"], **changes}
    )


def wrong_fields(response):
    """Return the fields of a form that have an error, each with the code of its first error."""
    errors = response.context["form"].errors.as_data()
    return {name: problems[0].code for name, problems in errors.items()}


def signed_in(client):
    return client.get("/account/").status_code == 200


def test_sign_up_creates_an_account_that_its_owner_confirms():
    client, response = ask()
    assert (response.status_code, response["Location"]) == (303, "/account/check-mail/")
    assert page_of(client.get("/account/check-mail/")).only("[data-sent]")
    assert not signed_in(client)
    link = link_to(GOOD["email"])
    assert not page_of(client.get(link)).all("[data-link]")
    assert not signed_in(client)  # a program that looks at links of letters confirms nothing
    response = client.post(link)
    assert (response.status_code, response["Location"]) == (303, "/account/")
    page = client.get("/account/").text
    assert 'class="strip success"' in page
    assert "Ada@example.org" in page
    user = User.objects.get()
    assert (user.username, user.email) == ("ada@example.org", "Ada@example.org")
    assert not user.is_staff
    assert client.get("/ops/").status_code == 403


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"email": "ada"}, "email", "invalid"),
        ({"email": ""}, "email", "required"),
        ({"email": "a" * 150 + "@b.org"}, "email", "max_length"),
        ({"password": "short", "again": "short"}, "password", "password_too_short"),
        ({"password": "password", "again": "password"}, "password", "password_too_common"),
        (
            {"password": "ada@example.org", "again": "ada@example.org"},
            "password",
            "password_too_similar",
        ),
        ({"again": "another one"}, "again", "different"),
        ({"password": ""}, "password", "required"),
        ({"password": "x" * 5000, "again": "x" * 5000}, "password", "max_length"),
        (
            {"password": "x\0xxxxxxx", "again": "x\0xxxxxxx"},
            "password",
            "null_characters_not_allowed",
        ),
    ],
)
def test_sign_up_with_an_invalid_field(changes, field, code):
    client, response = ask(**changes)
    page = response.text
    assert response.status_code == 422
    assert wrong_fields(response)[field] == code
    assert f'id="id_{field}_error"' in page
    assert 'class="errors"' in page
    assert "<title>Error: " in page
    assert not User.objects.exists()
    assert not signed_in(client)
    if "email" not in changes:
        assert 'value="Ada@Example.org"' in page
    assert "correct horse" not in page  # a password is never sent back


def test_sign_in_ignores_case():
    sign_up()
    client = Client()
    response = sign_in(client, email=" ADA@EXAMPLE.ORG ")
    assert (response.status_code, response["Location"]) == (303, "/account/")
    assert signed_in(client)
    client.post("/logout/")
    assert not signed_in(client)


def test_sign_in_with_a_wrong_password_or_email():
    sign_up()
    responses = [
        sign_in(Client(), **wrong)
        for wrong in ({"password": "wrong"}, {"email": "bob@example.org"})
    ]
    assert [wrong_fields(response) for response in responses] == [{"__all__": "wrong"}] * 2
    answer, other = (without_input(response.text) for response in responses)
    assert answer == other
    assert 'class="errors"' in answer


def test_sign_in_is_locked_after_wrong_passwords(settings):
    settings.AXES_FAILURE_LIMIT = 3
    sign_up()
    client = Client()
    assert [sign_in(client, password="wrong").status_code for _ in range(4)] == [422, 422, 429, 429]
    locked = sign_in(client)
    assert locked.status_code == 429
    assert 'data-locked="name"' in locked.text
    assert not signed_in(client)


@pytest.mark.parametrize("path", ["/account/sign-in/", "/account/sign-up/"])
@pytest.mark.parametrize(
    ("next_", "location"),
    [
        ("/checkout/", "/checkout/"),
        ("https://evil.example/", "/account/"),
        ("//evil.example/", "/account/"),
        ("/\\evil.example/", "/account/"),
        ("javascript:alert(1)", "/account/"),
        ("evil", "/account/"),
    ],
)
def test_sign_in_redirects_only_within_the_shop(path, next_, location):
    if "sign-in" in path:
        confirmed(GOOD["email"])
    client = Client()
    shown = client.get(path, {"next": next_}).text
    assert (f'name="next" value="{next_}"' in shown) == (next_ == location)
    response = client.post(path, {**GOOD, "next": next_})
    if "sign-up" in path:
        response = client.post(link_to(GOOD["email"]))
    assert response["Location"] == location


@pytest.mark.parametrize("path", ["", "address/", "password/"])
def test_account_pages_need_a_sign_in(path):
    response = Client().get(f"/account/{path}")
    assert response.status_code == 302
    assert response["Location"] == f"/account/sign-in/?next=/account/{path}"


def test_sign_in_keeps_the_cart():
    products()
    confirmed(GOOD["email"])
    client = Client()
    fill_cart(client, sku_0=2)
    before = client.session.session_key
    sign_in(client)
    assert client.session.session_key != before
    assert "€20.00" in client.get("/cart/").text


def test_password_change_ends_other_sessions():
    client, _ = sign_up()
    other = Client()
    sign_in(other)
    new = {"old": "correct horse", "password": "battery staple", "again": "battery staple"}
    wrong = client.post("/account/password/", {**new, "old": "wrong"})
    assert wrong.status_code == 422
    assert wrong_fields(wrong) == {"old": "wrong"}
    assert client.post("/account/password/", new).status_code == 303
    assert signed_in(client)
    assert not signed_in(other)
    assert sign_in(Client()).status_code == 422
    assert sign_in(Client(), password="battery staple").status_code == 303


def test_password_change_is_rate_limited():
    client, _ = sign_up()
    answers = [
        client.post("/account/password/", {"old": str(number)}).status_code for number in range(11)
    ]
    assert answers == [422] * 10 + [429]


def test_sign_up_is_rate_limited():
    for number in range(20):
        ask(email=f"a{number}@example.org", again="a typing error")  # is not counted
        assert ask(email=f"a{number}@example.org")[1].status_code == 303
    _, response = ask(email="one@more.org")
    assert response.status_code == 429
    assert response["Retry-After"] == "3600"
    assert SIGN_UPS.refusal_text in response.text
    assert 'value="one@more.org"' in response.text
    assert User.objects.count() == 20
    elsewhere = Client(REMOTE_ADDR="192.0.2.1")
    assert ask(elsewhere, email="one@more.org")[1].status_code == 303


def test_find_form_is_rate_limited():
    guess = {"number": "00000-00000", "email": "ada@example.org"}
    answers = [Client().post("/orders/find/", guess).status_code for _ in range(31)]
    assert answers == [422] * 30 + [429]


def test_rate_limit_resets_after_its_time():
    limit = Limit("test", most=2, seconds=60)
    assert [limit.allows("ada") for _ in range(3)] == [True, True, False]
    assert limit.allows("bob")
    assert not Throttle.objects.filter(key__contains="ada").exists()
    Throttle.objects.update(until=timezone.now() - timedelta(minutes=5))
    assert limit.allows("ada")
    assert limit.allows("cleo")  # a new count deletes expired ones
    assert Throttle.objects.count() == 2


def test_rate_limit_after_the_clock_is_set_back():
    limit = Limit("test", most=1, seconds=60)
    assert [limit.allows("ada") for _ in range(2)] == [True, False]
    Throttle.objects.update(until=timezone.now() + timedelta(hours=1))
    assert [limit.allows("ada") for _ in range(2)] == [True, False]


def test_account_page_lists_only_its_orders():
    products()
    guest = Client()
    as_guest = buy(guest, sku_0=1)
    client, _ = sign_up()
    assert 'class="empty"' in client.get("/account/").text
    order = buy(client, sku_0=2)
    assert Placement.objects.get(order=order).customer.username == "ada@example.org"
    assert f"/orders/{order}/" in client.get("/account/").text  # placed, and not taken yet
    submission.take(100)
    page = client.get("/account/").text
    assert f"/orders/{order}/" in page
    assert 'class="empty"' not in page
    assert "€20.00" in page
    assert str(as_guest) not in page  # though it was sent to the same address
    assert "Lovelace" in Client().get(link(as_guest)).text


def past_orders(customer, count):
    return Order.objects.bulk_create(
        Order(
            id=uuid4(), number=f"N{number:04}", customer=customer, total=100, currency="EUR",
            country="CH", payment_method="pm_card_visa",
        )
        for number in range(count)
    )  # fmt: skip


def test_account_pages_together_list_each_order_once():
    client, _ = sign_up()
    ada, bob = User.objects.get(), User.objects.create_user("bob")
    mine, theirs = past_orders(ada, 45), past_orders(bob, 3)
    address, shown, sizes = "/account/", [], []
    while address:
        page = client.get(address).text
        numbers = re.findall(r">(N\d{4})<", page)
        sizes.append(len(numbers))
        shown += numbers
        older = re.search(r'href="(\?before=[^"]+)"', page)
        address = older and "/account/" + older[1]
    assert sizes == [20, 20, 5]
    assert sorted(shown) == sorted(order.number for order in mine)
    for before in (theirs[0].id, uuid4(), "x", "'"):  # not one of mine: the first page
        page = client.get(f"/account/?before={before}").text
        assert page.count('class="past-number"') == 20


@pytest.mark.parametrize("count", [1, 15])
def test_account_page_query_count(django_assert_max_num_queries, count):
    client, _ = sign_up()
    past_orders(User.objects.get(), count)
    client.get("/account/")
    with django_assert_max_num_queries(
        7
    ):  # session, visitor, user, orders, placements, profile, last order
        client.get("/account/")


def test_checkout_uses_the_saved_address():
    products()
    client, _ = sign_up()
    fill_cart(client, sku_0=1)
    assert 'value="Ada@example.org"' in client.get("/checkout/").text
    address = {name: DETAILS[name] for name in ("name", "street", "postcode", "city", "country")}
    response = client.post("/account/address/", {**address, "street": ""})
    assert response.status_code == 422
    assert set(response.context["form"].errors) == {"street"}
    assert client.post("/account/address/", address).status_code == 303
    assert client.post("/account/address/", {**address, "city": "Bern"}).status_code == 303
    assert Profile.objects.get().city == "Bern"
    page = client.get("/checkout/").text
    for value in ("Ada Lovelace", "Rue de Lyon 12", "Bern"):
        assert f'value="{value}"' in page
    assert '<option value="CH" selected>' in page


def test_checkout_without_a_saved_address_uses_the_last_orders():
    products()
    client, _ = sign_up()
    buy(client)
    submission.take(100)
    fill_cart(client, sku_0=1)
    assert 'value="Rue de Lyon 12"' in client.get("/checkout/").text
    assert "Genève<br>Switzerland</p>" in client.get("/account/").text


def test_orders_of_a_deleted_customer_remain():
    products()
    client, _ = sign_up()
    order = buy(client)
    submission.take(100)
    User.objects.all().delete()
    assert Order.objects.get().customer is None
    assert Client().get(link(order)).status_code == 200


@pytest.mark.parametrize("path", ["sign-in/", "sign-up/", "", "address/", "password/"])
def test_account_pages_are_not_cached(path):
    client, _ = sign_up()
    response = client.get(f"/account/{path}")
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert 'style="' not in response.text


def test_account_fields_have_autocomplete_tokens():
    client, _ = sign_up()
    for path, expected in {
        "sign-in/": ["username", "current-password"],
        "sign-up/": ["username", "new-password", "new-password"],
        "password/": ["username", "current-password", "new-password", "new-password"],
        "address/": [
            "name",
            "country",
            "street-address",
            "postal-code",
            "address-level2",
            "address-level1",
        ],
    }.items():
        page = client.get(f"/account/{path}").text
        assert re.findall(r'autocomplete="([^"]+)"', page) == expected


def test_account_forms_without_a_csrf_token():
    strict = Client(enforce_csrf_checks=True)
    for path in ("sign-in/", "sign-up/"):
        assert strict.post(f"/account/{path}", GOOD).status_code == 403
