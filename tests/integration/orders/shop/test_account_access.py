"""Access to orders: every route with an order's id, for every kind of visitor."""

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from orchestration import submission
from orders.lifecycle.access import signature
from tests.support.operators import browser, person
from tests.support.shop import buy, products

pytestmark = pytest.mark.django_db
PERSONAL = ("Lovelace", "Rue de Lyon", "Genève", "ada@example.org")

# Each visitor gets all of an order, a stub without personal data, or an error.
VISITORS = ("guest", "other", "link", "owner", "staff", "seller")
# Changes of an order: not by GET; by POST for visitors who see all of it.
CHANGES = (
    "shop:order_card", "shop:order_leave_out", "shop:order_wait", "shop:order_cancel", "shop:order_return",
    "shop:order_claim", "shop:order_remove",
)  # fmt: skip
ACCOUNTS_ORDER = {  # an order of an account
    "shop:order": (404, 404, "all", "all", 404, 404),
    "shop:order_status": (404, 404, "all", "all", 404, 404),
    "shop:order_address": (404, 404, 303, 303, 404, 404),
    "shop:order_exchange": (404, 404, 303, 303, 404, 404),
    **dict.fromkeys(CHANGES, (405,) * 6),
    "admin:orders_order_change": (302, 302, 302, 302, 403, "all"),
    "admin:orders_order_history": (302, 302, 302, 302, 403, 200),
    "admin:orders_order_delete": (302, 302, 302, 302, 403, 403),
    "admin:orders_order_refund": (302, 302, 302, 302, 403, 403),
    "admin:orders_order_returns": (302, 302, 302, 302, 403, 403),
}
GUESTS_ORDER = {  # an order without an account
    "shop:order": ("stub", "stub", "all", "stub", "stub", "stub"),
    "shop:order_status": ("stub", "stub", "all", "stub", "stub", "stub"),
    "shop:order_address": (404, 404, 303, 404, 404, 404),
    "shop:order_exchange": (404, 404, 303, 404, 404, 404),
    **dict.fromkeys(CHANGES, (405,) * 6),
    "admin:orders_order_change": (302, 302, 302, 302, 403, "all"),
    "admin:orders_order_history": (302, 302, 302, 302, 403, 200),
    "admin:orders_order_delete": (302, 302, 302, 302, 403, 403),
    "admin:orders_order_refund": (302, 302, 302, 302, 403, 403),
    "admin:orders_order_returns": (302, 302, 302, 302, 403, 403),
}
# Routes whose parameter is not an order's id. The dashboard's pages are about tasks and the API's
# clients have tokens; both have access tests of their own.
WITHOUT_ORDER = {
    "mfa_remove_webauthn", "shop:confirm", "shop:product", "shop:reset", "shop:subscribe",
    "shop:subscribe_sums", "staff_password_reset", "webhook",
    # tests/integration/orders/subscriptions/test_pages.py
    "shop:subscription", "shop:subscription_change", "shop:subscription_skip",
    "shop:subscription_pause", "shop:subscription_resume", "shop:subscription_end",
}  # fmt: skip
TESTED_ELSEWHERE = ("ops:", "api:")


def routes(resolver, namespace=""):
    """Yield the name of every route that has a parameter."""
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from routes(pattern, inner)
        elif isinstance(pattern, URLPattern) and pattern.pattern.regex.groups:
            yield f"{namespace}{pattern.name or pattern.pattern}"


def may_show_an_order(name):
    if name.startswith(TESTED_ELSEWHERE) or name in WITHOUT_ORDER:
        return False
    return name.startswith("admin:orders_order_") or not name.startswith("admin:")


def test_route_with_an_order_is_in_the_tables():
    names = {name for name in routes(get_resolver()) if may_show_an_order(name)}
    assert names == set(ACCOUNTS_ORDER) == set(GUESTS_ORDER), (
        "a route with a parameter needs a row in both tables, or to be in WITHOUT_ORDER"
    )


@pytest.fixture
def people():
    ada = person("ada")
    return {
        "guest": browser(),
        "other": browser(person("bob")),
        "link": browser(),
        "owner": browser(ada),
        "staff": browser(person("eve", "operate", "resubmit", is_staff=True)),
        "seller": browser(person("sam", "view_order", "view_product", is_staff=True)),
        "ada": ada,
    }


def seen(people, name, order):
    """Return what each visitor gets of a route."""
    address = reverse(name, args=[order])
    return tuple(seen_by(people[who], who, address, order) for who in VISITORS)


def seen_by(client, who, address, order):
    query = {"t": signature(order)} if who == "link" else {}
    response = client.get(address, query)
    personal = [word for word in PERSONAL if word in response.text]
    if response.status_code != 200:
        assert personal == []
        return response.status_code
    if len(personal) == len(PERSONAL):
        return "all"
    assert personal == []
    return 200 if "/admin/" in address else "stub"


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "just posted"])
@pytest.mark.parametrize("name", ACCOUNTS_ORDER)
def test_order_of_an_account_is_visible_to_its_owner_only(people, name, taken):
    products()
    order = buy(browser(people["ada"]), sku_0=2)
    if taken:
        submission.take(100)
        assert seen(people, name, order) == ACCOUNTS_ORDER[name]
    elif name.startswith("shop:") and name not in CHANGES:
        for who, expected in zip(VISITORS, ACCOUNTS_ORDER[name], strict=True):
            query = {"t": signature(order)} if who == "link" else {}
            status = people[who].get(reverse(name, args=[order]), query).status_code
            assert (status == 200) == (expected == "all"), who


@pytest.mark.parametrize("name", GUESTS_ORDER)
def test_order_of_a_guest_is_visible_by_its_link(people, name):
    products()
    order = buy(Client(), sku_0=2)
    submission.take(100)
    assert seen(people, name, order) == GUESTS_ORDER[name]


@pytest.mark.parametrize("name", CHANGES)
def test_change_of_another_customers_order_is_not_found(people, name):
    products()
    accounts, guests = buy(browser(people["ada"]), sku_0=2), buy(Client(), sku_0=2)
    submission.take(100)
    for order, allowed in ((accounts, {"link", "owner"}), (guests, {"link"})):
        for who in VISITORS:
            query = f"?t={signature(order)}" if who == "link" else ""
            response = people[who].post(reverse(name, args=[order]) + query)
            assert (response.status_code != 404) == (who in allowed), (name, who)
            if who not in allowed:
                assert not [word for word in PERSONAL if word in response.text]
    wrong = f"?t={signature(guests)}"
    assert Client().post(reverse(name, args=[accounts]) + wrong).status_code == 404


def test_link_to_another_order_is_not_found(people):
    products()
    mine, other = buy(Client(), sku_0=1), buy(browser(people["ada"]), sku_0=2)
    submission.take(100)
    assert Client().get(f"/orders/{other}/", {"t": signature(mine)}).status_code == 404


def test_order_is_hidden_after_sign_out(people):
    products()
    client = people["owner"]
    order = buy(client, sku_0=2)
    assert client.get(f"/orders/{order}/").status_code == 200
    client.post("/logout/")
    assert client.get(f"/orders/{order}/").status_code == 404
