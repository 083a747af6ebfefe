"""Who may see whose order: every route with an order's id, for everybody who may come along."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from orchestration import submission
from orders.access import signature
from tests.shop import buy, products

pytestmark = pytest.mark.django_db
PERSONAL = ("Lovelace", "Rue de Lyon", "Genève", "ada@example.org")

# What each of them gets: everything, a stub without a personal word in it, or an error.
WHO = ("guest", "other", "link", "owner", "staff", "seller")
# What customers do about their order: never by GET, and by POST for those who see all of it.
ACTS = ("shop:order_card", "shop:order_leave_out", "shop:order_wait", "shop:order_cancel")
ACCOUNTS_ORDER = {  # of an order that belongs to an account
    "shop:order": (404, 404, "all", "all", 404, 404),
    "shop:order_status": (404, 404, "all", "all", 404, 404),
    **dict.fromkeys(ACTS, (405,) * 6),
    "admin:orders_order_change": (302, 302, 302, 302, 403, "all"),
    "admin:orders_order_history": (302, 302, 302, 302, 403, 200),
    "admin:orders_order_delete": (302, 302, 302, 302, 403, 403),
}
GUESTS_ORDER = {  # of an order that was placed without one
    "shop:order": ("stub", "stub", "all", "stub", "stub", "stub"),
    "shop:order_status": ("stub", "stub", "all", "stub", "stub", "stub"),
    **dict.fromkeys(ACTS, (405,) * 6),
    "admin:orders_order_change": (302, 302, 302, 302, 403, "all"),
    "admin:orders_order_history": (302, 302, 302, 302, 403, 200),
    "admin:orders_order_delete": (302, 302, 302, 302, 403, 403),
}
# Routes with a parameter that is no order's id. A page of the dashboard is about a task, and guarded
# by its own permissions (test_ops_access). A program has a token, and a table of its own
# (test_api_access).
OF_OTHER_THINGS = {"shop:product"}
GUARDED_ELSEWHERE = ("ops:", "api:")


def routes(resolver, namespace=""):
    """Yield the name of every route that has a parameter."""
    for one in resolver.url_patterns:
        if isinstance(one, URLResolver):
            inner = f"{namespace}{one.namespace}:" if one.namespace else namespace
            yield from routes(one, inner)
        elif isinstance(one, URLPattern) and one.pattern.regex.groups:
            yield f"{namespace}{one.name or one.pattern}"


def may_hold_an_order(name):
    if name.startswith(GUARDED_ELSEWHERE) or name in OF_OTHER_THINGS:
        return False
    return name.startswith("admin:orders_order_") or not name.startswith("admin:")


def test_every_route_with_an_order_is_in_the_table():
    found = {name for name in routes(get_resolver()) if may_hold_an_order(name)}
    assert found == set(ACCOUNTS_ORDER) == set(GUESTS_ORDER), (
        "a route with a parameter needs a row in both tables, or to be named as one of another thing"
    )


def person(name, *permissions, **flags):
    user = User.objects.create_user(name, **flags)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def browser(user=None):
    client = Client()
    if user:
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


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
    """Return what each of them gets of a route."""
    return tuple(one_sees(people[who], who, reverse(name, args=[order]), order) for who in WHO)


def one_sees(client, who, address, order):
    query = {"t": signature(order)} if who == "link" else {}
    response = client.get(address, query)
    text = response.content.decode()
    personal = [word for word in PERSONAL if word in text]
    if response.status_code != 200:
        assert personal == []
        return response.status_code
    if len(personal) == len(PERSONAL):
        return "all"
    assert personal == []
    return 200 if "/admin/" in address else "stub"


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "just posted"])
@pytest.mark.parametrize("name", ACCOUNTS_ORDER)
def test_an_order_of_an_account_is_for_its_owner(people, name, taken):
    products()
    order = buy(browser(people["ada"]), sku_0=2)
    if taken:
        submission.take(100)
        assert seen(people, name, order) == ACCOUNTS_ORDER[name]
    elif name.startswith("shop:") and name not in ACTS:
        for who, expected in zip(WHO, ACCOUNTS_ORDER[name], strict=True):
            query = {"t": signature(order)} if who == "link" else {}
            status = people[who].get(reverse(name, args=[order]), query).status_code
            assert (status == 200) == (expected == "all"), who


@pytest.mark.parametrize("name", GUESTS_ORDER)
def test_a_guests_order_is_for_who_has_its_link(people, name):
    products()
    order = buy(Client(), sku_0=2)
    submission.take(100)
    assert seen(people, name, order) == GUESTS_ORDER[name]


@pytest.mark.parametrize("name", ACTS)
def test_nobody_acts_on_an_order_that_is_not_theirs(people, name):
    products()
    accounts, guests = buy(browser(people["ada"]), sku_0=2), buy(Client(), sku_0=2)
    submission.take(100)
    for order, allowed in ((accounts, {"link", "owner"}), (guests, {"link"})):
        for who in WHO:
            query = f"?t={signature(order)}" if who == "link" else ""
            response = people[who].post(reverse(name, args=[order]) + query)
            assert (response.status_code != 404) == (who in allowed), (name, who)
            if who not in allowed:
                assert not [word for word in PERSONAL if word in response.content.decode()]
    wrong = f"?t={signature(guests)}"
    assert Client().post(reverse(name, args=[accounts]) + wrong).status_code == 404


def test_a_link_to_one_order_opens_no_other(people):
    products()
    mine, other = buy(Client(), sku_0=1), buy(browser(people["ada"]), sku_0=2)
    submission.take(100)
    assert Client().get(f"/orders/{other}/", {"t": signature(mine)}).status_code == 404


def test_whoever_signs_out_sees_the_order_no_more(people):
    products()
    client = people["owner"]
    order = buy(client, sku_0=2)
    assert client.get(f"/orders/{order}/").status_code == 200
    client.post("/logout/")
    assert client.get(f"/orders/{order}/").status_code == 404
