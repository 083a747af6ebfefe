"""Values that no column can hold, in every address and query: none of them is a failure."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib import admin
from django.urls import URLPattern, get_resolver

from tests.support.applications import application, new_order
from tests.support.operators import browser, person
from tests.support.shop import placed, products

pytestmark = [
    pytest.mark.django_db,
    # a day in an address has no time zone; Django warns of it
    pytest.mark.filterwarnings("ignore:.* received a naive datetime:RuntimeWarning"),
]
admin.autodiscover()  # as the URL configuration does, which may not be loaded yet

ROOT = Path(__file__).parents[3]
HUGE = str(10**30)
PAST_BIGINT = str(2**63)
ODD = ["%00", HUGE, f"-{HUGE}", PAST_BIGINT, "99999999", "%FF", "9999-12-31", "0001-01-01"]
ODDER = [
    *ODD, "a%00b", str(2**31), "0", "-1", "1e400", "nan", "0x1F", "%ED%A0%80", "%EF%BF%BF",
    "99999999-01-01", "2026-13-45", "9999-12-31T23:59:59%2B00:00", "0001-01-01T00:00:00-23:59",
    "%D9%A1%D9%A2", "x" * 3000, "(", "%5B%5D",
]  # fmt: skip
FEW = ["%00", HUGE, "99999999", "9999-12-31", "0001-01-01"]
FIELDS = [
    "action", "_selected_action", "index", "select_across", "next", "language", "username", "password",
    "email", "name", "post", "seen", "_save", "form-TOTAL_FORMS", "form-INITIAL_FORMS", "form-0-sku",
    "form-0-stock", "initial-name", "initial-price", "price", "address", "groups", "permissions", "weight",
    "sku", "quantity", "number", "reason", "attempt", "payload", "q", "code", "token",
]  # fmt: skip
READ = re.compile(r"""(?:GET|asked)(?:\.get(?:list)?\(|\[)"(\w+)\"""")
PAGING = [
    "p",
    "o",
    "q",
    "all",
    "e",
    "page",
    "_facets",
    "_to_field",
    "_popup",
    "_changelist_filters",
]
NUMBERS = ["%00", HUGE, "99999999"]
BEYOND = ["%00", HUGE, "9999-12-31"]
DOCUMENTS = ("api/docs", "api/openapi.json")  # they read no query, and take long to write
LOOKUPS = ["__gte", "__in", "__year"]


def patterns(resolver=None, prefix="") -> Iterator[tuple[str, dict]]:
    """Yield every address with what its places take."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from patterns(pattern, route)


def filled(route, value) -> str:
    return "/" + re.sub(r"<(?:\w+:)?\w+>", lambda _: value, route).removesuffix("$")


def names_read() -> list[str]:
    """Return the parameters that pages read by name."""
    files = itertools.chain.from_iterable(
        (ROOT / package).rglob("*.py") for package in ("orders", "orchestration", "sasweb")
    )
    return sorted({name for file in files for name in READ.findall(file.read_text())})


@pytest.fixture
def boss(client):
    products(3)
    placed(client)
    client = browser(person("boss", is_staff=True, is_superuser=True))
    client.raise_request_exception = False
    return client


def failures(answers):
    """Return what failed, of pairs of a name and an answer."""
    return sorted(
        {
            f"{answer.status_code} {name[:200]}"
            for name, answer in answers
            if answer.status_code >= 500
        }
    )


def got(client, addresses):
    for address in addresses:
        client.cookies.pop("messages", None)  # each page would read what all before have left
        yield address, client.get(address)


@pytest.mark.parametrize("value", FEW)
def test_odd_parts_of_addresses(boss, value):
    routes = [route for route in patterns() if "<" in route]
    assert len(routes) > 100
    assert failures(got(boss, [filled(route, value) for route in routes])) == []


@pytest.mark.parametrize("value", ODDER)
def test_odd_queries_of_pages(boss, value):
    elsewhere = ("admin/", *DOCUMENTS)
    routes = [route for route in patterns() if "<" not in route and not route.startswith(elsewhere)]
    names = sorted({*names_read(), *PAGING})
    asked = [names]
    if value in (ODD[0], PAST_BIGINT):
        asked += [names[start::8] for start in range(8)]  # one refusal hides what the next would do
    queries = ["&".join(f"{name}={value}" for name in part) for part in asked]
    assert failures(got(boss, [f"/{route}?{query}" for route in routes for query in queries])) == []


def filters_of(model):
    """Yield parameters that filter a list of the admin, each with a value."""
    shown = admin.site._registry[model].get_list_filter(None)
    fields = [
        entry[0] if isinstance(entry, tuple) else getattr(entry, "parameter_name", entry)
        for entry in shown
    ]
    yield from itertools.product([model._meta.pk.name, *fields], FEW)
    yield from itertools.product((f"{field}{name}" for field in fields for name in LOOKUPS), BEYOND)
    yield from itertools.product(PAGING, NUMBERS)


@pytest.mark.parametrize("model", sorted(admin.site._registry, key=str), ids=str)
def test_odd_filters_of_the_admin(boss, model):
    address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    queries = [f"{name}={value}" for name, value in filters_of(model)]
    assert failures(got(boss, [f"{address}?{query}" for query in queries])) == []


def chosen(value):
    return {"action": "delete_selected", "_selected_action": value, "index": "0"}


def rows(value):
    return {"_save": "Save", "form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-sku": value,
            "form-0-stock": value, "form-0-position": value, "initial-form-0-stock": value}  # fmt: skip


def all_fields(value):
    return dict.fromkeys(FIELDS, value)


# the admin's lists alone read the first two
@pytest.mark.parametrize(
    ("fields", "top"), [(chosen, "/admin/"), (rows, "/admin/"), (all_fields, "/")]
)
@pytest.mark.parametrize("value", ["\0", HUGE])
def test_odd_fields_of_forms(boss, value, fields, top):
    routes = [filled(route, "1") for route in patterns() if "logout" not in route]
    sent = fields(value)
    answers = ((route, boss.post(route, sent)) for route in routes if route.startswith(top))
    assert failures(answers) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": 'sessionid="aaaaaaaaaaaaaaaa\\000"'},
        {"Cookie": 'csrftoken="\\000"; django_language="\\000"; messages="\\000"; cart="\\000"'},
        {"Cookie": f"sessionid={HUGE}; csrftoken={HUGE}; django_language={HUGE}; messages={HUGE}"},
        {"Accept-Language": "x" * 3000, "X-Forwarded-For": HUGE, "traceparent": f"00-{HUGE}-{HUGE}-01"},
        {"User-Agent": "\xff" * 3000, "Referer": "\xff", "Accept": "x" * 3000, "Range": "\xff"},
        {"Authorization": "Bearer \xff", "Idempotency-Key": "\xff", "If-None-Match": "\xff",
         "HX-Request": "true", "HX-Current-URL": "\xff"},
    ],
)  # fmt: skip
def test_odd_headers(client, headers):
    products(1)
    client.raise_request_exception = False
    routes = [filled(route, "1") for route in patterns()]
    answers = ((route, client.get(route, headers=headers)) for route in routes)
    assert failures(answers) == []
    answers = (
        (route, client.post(route, {"username": "a", "password": "b"}, headers=headers))
        for route in routes
    )
    assert failures(answers) == []


@pytest.mark.parametrize(
    "text", [r"\u0000", r"\ud800", r"a\u0000b", HUGE, "1e400", "NaN", "[" * 5000, "null", "9999999999999999"]
)  # fmt: skip
def test_odd_json(client, text):
    products(1)
    _, token = application()
    client.raise_request_exception = False
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "0" * 32}
    bodies = [text, f'"{text}"']
    names = ("email", "reference", "payment_method", "language", "confirmation")
    orders = [(json.dumps(new_order(**{name: "@"})), "@") for name in names]
    orders += [(json.dumps(new_order()), part) for part in ("sku-0", "2", "Lovelace", "email")]
    bodies += [body.replace(part, text, 1) for body, part in orders]
    routes = [
        filled(route, "00000000-0000-4000-8000-000000000001")
        for route in patterns()
        if route.startswith("api/")
    ]

    def sent(method, route, body):
        return client.generic(method, route, body, "application/json", headers=headers)

    methods = ("POST", "PUT", "PATCH", "DELETE")
    # a method that is not allowed reads no body, nor does a document
    reads = [
        (method, route)
        for route, method in itertools.product(routes, methods)
        if sent(method, route, text).status_code not in (200, 405)
    ]
    assert reads
    answers = (
        (f"{method} {route} {body}", sent(method, route, body))
        for (method, route), body in itertools.product(reads, bodies)
    )
    assert failures(answers) == []
