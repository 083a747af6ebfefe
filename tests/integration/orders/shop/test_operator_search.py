"""What operators find orders by besides what the engine knows: typed numbers, names, parcels."""

import unicodedata
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.console.queries import task_filters, word_meanings
from orchestration.console.queries.search_query import read
from orchestration.models import Task
from orders.lifecycle import operator_search
from orders.lifecycle.message import EMAIL_WORKFLOW, WORKFLOW
from orders.lifecycle.numbers import order_number
from orders.models import Order
from tests.support.operators import browser, person
from tests.support.page import listed, page
from tests.support.shop import declined, finish_all, inform, placed, products

pytestmark = pytest.mark.django_db


@pytest.fixture
def order(client):
    products()
    order = placed(client, sku_0=2)
    # "0" and "1" are what people read as letters
    Task.objects.filter(reference=str(order)).update(label="7KQ01-9XD2P")
    return order


def matches(query, *, personal=True):
    rights = ["operate", *(["see_personal"] if personal else [])]
    viewer = browser(person(uuid4().hex, *rights))
    return listed(viewer.get("/ops/tasks/", {"q": query}))


def labels(query):
    """Return the labels of the tasks that a search finds, without its page."""
    search = word_meanings.resolved(read({"q": query}, personal=True))
    ids = task_filters.ids(search.query)
    return list(Task.objects.filter(id__in=ids).values_list("label", flat=True))


@pytest.mark.parametrize(
    "typed",
    ["7KQ01-9XD2P", "7kq019xd2p", "7KQOI9XD2P", "7kqol-9xd2p", "7kqoi", '"7KQ01 9XD2P"', "7KQ01 9XD2P"],
)  # fmt: skip
def test_number_is_found_as_people_type_it(order, typed):
    assert matches(typed, personal=False) == ["7KQ01-9XD2P"]


@pytest.mark.parametrize("typed", ["7kq02", "8KQOI9XD2P", "7KQ01-9XD2PX"])
def test_other_number_is_not_found(order, typed):
    assert matches(typed) == []


@pytest.mark.parametrize(
    "typed", ["lovelace", "Love", "ada lovelace", '"Lovelace, Ada"', "lovelace ada"]
)
def test_name_is_found_by_those_who_may_see_it(order, typed):
    Order.objects.filter(id=order).update(name="Ada King-Lovelace")
    assert matches(typed) == ["7KQ01-9XD2P"]
    assert matches(typed, personal=False) == []


NAMES_OF_CUSTOMERS = [
    "Jan de Boer", "María de la Cruz", "José da Silva", "Luca Di Caprio", "Jo Ann Baker", "Li Wu", "Bo Ek",
    "王伟", "李小龙", "김철수", "محمد بن سلمان", "प्रिया शर्मा", "মোহাম্মদ আলী", "สมชาย ใจดี", "שָׁלוֹם כהן",
    "J. R. R. Tolkien", "Anne\u2013Marie Lou", "Anne\u2014Marie", "Ada2 Lovelace", "3M Deutschland",
    "Smith & Sons GmbH", "Иван Петров", "Γιώργος Παπαδόπουλος", "Nguyễn Văn Ánh", "O\u2019Connor-Šťastný",
    "Þórdís Æsa", "Jürgen Groß", "İpek I\u015f\u0131k", "Dr. Müller-Lüdenscheidt", "Ng", "Ó", "X Æ A-12",
    "አበበ በቀለ",
    "Վարդան Մամիկոնյան", "გიორგი ბერიძე", "ගයාන් පෙරේරා", "தமிழ் செல்வி", "ນາງ ສີ", "མིང་", "さくら ももこ",
    "D'Arcy \\ Söhne", "müller@home", "A.B.C. GmbH", "C/O Meier", "24/7 Kiosk", "a1b2-c3", "-Lou-",
    "Café (Süd)",
]  # fmt: skip


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_name_as_it_was_typed_at_the_checkout_finds_the_order(order, form):
    for name in NAMES_OF_CUSTOMERS:
        Order.objects.filter(id=order).update(name=unicodedata.normalize(form, name))
        for typed in (unicodedata.normalize(other, name) for other in ("NFC", "NFD")):
            assert labels(f'"{typed}"') == ["7KQ01-9XD2P"], typed
            if not set("()").intersection(name) and not name.startswith(
                "-"
            ):  # of the search itself
                assert labels(typed) == ["7KQ01-9XD2P"], typed


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("wu", "Li Wu"),
        ("de", "Jan de Boer"),
        ("伟", "王 伟"),
        ("शर्मा", "प्रिया शर्मा"),
        ("कुम", "राज कुमार"),
    ],
)
def test_part_of_a_name_finds_the_order(order, typed, name):
    Order.objects.filter(id=order).update(name=name)
    assert matches(typed) == ["7KQ01-9XD2P"]


@pytest.mark.parametrize("typed", ["bo", "j", "o", "de bo", "jan r"])
def test_short_word_is_not_a_beginning(order, typed):
    Order.objects.filter(id=order).update(name="Jan de Boer")
    assert matches(typed) == []


@pytest.mark.parametrize(
    "typed",
    ["de lovelace 7KQ01-9XD2P", "lovelace de 7kq01", "lovelace OR turing", "(ada OR lovelace) state:pending",
     "ada -lovelace", "NOT turing", "ada (byron OR lovelace)"],
)  # fmt: skip
def test_name_beside_other_words(order, client, typed):
    Order.objects.filter(id=order).update(name="Ada de Lovelace")
    other = placed(client, sku_0=2)
    Order.objects.filter(id=other).update(name="Ada Byron")
    Task.objects.filter(reference=str(other)).update(label="8KQ01-9XD2P")
    both = {"7KQ01-9XD2P", "8KQ01-9XD2P"}
    expected = {
        "(ada OR lovelace) state:pending": both,
        "NOT turing": both,
        "ada (byron OR lovelace)": both,
        "ada -lovelace": {"8KQ01-9XD2P"},
    }.get(typed, {"7KQ01-9XD2P"})
    assert set(matches(typed)) == expected


def test_words_of_a_name_are_found_by_an_index(order):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    for text in ("Jan de Boer", "Wu", "María", "王伟"):
        with CaptureQueriesContext(connection) as queries:
            operator_search.named(text)
        (statement,) = [query["sql"] for query in queries if "@@" in query["sql"]]
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {statement}")
            plan = " ".join(line for (line,) in cursor.fetchall())
        assert "order_by_name" in plan, text


def test_admin_searches_orders_by_the_same_names(order):
    Order.objects.filter(id=order).update(name="Jan de Boer", number="7KQ01-9XD2P")
    boss = browser(person("boss", is_staff=True, is_superuser=True))
    for typed in ("Jan de Boer", "boer", "7KQ01", str(order), "ada@example"):
        assert "7KQ01-9XD2P" in boss.get("/admin/orders/order/", {"q": typed}).text, typed
    for typed in ("Jan de Vries", "bo", "!"):
        assert "7KQ01-9XD2P" not in boss.get("/admin/orders/order/", {"q": typed}).text, typed


@pytest.mark.parametrize(
    "typed", ["o'brien", "d\u2019arcy", "lovelace:* | a", "!lovelace", "'", "love\\", "&"]
)
def test_signs_in_a_name_do_no_harm(order, typed):
    Order.objects.filter(id=order).update(name="Ada O'Brien")
    assert matches(f'"{typed}"') == (["7KQ01-9XD2P"] if typed == "o'brien" else [])


def test_name_of_more_orders_than_are_listed_is_noted(order, client, monkeypatch):
    placed(client, sku_0=2)
    monkeypatch.setattr(operator_search, "MOST", 1)
    viewer = browser(person("vic", "operate", "see_personal"))
    response = viewer.get("/ops/tasks/", {"q": "lovelace"})
    assert len(listed(response)) == 1
    assert page(response).only("[data-more]")["data-more"] == "lovelace"


def test_parcel_is_found_once_it_is_booked(order):
    finish_all()
    inform()
    parcel = Order.objects.get(id=order).parcel
    assert len(parcel) >= operator_search.SHORTEST_PARCEL
    for typed in (parcel, parcel.lower(), parcel[:4]):
        assert matches(typed, personal=False) == ["7KQ01-9XD2P"]
    assert matches(f"{parcel}0") == []


def test_exact_number_opens_the_order_not_its_emails(client):
    products()
    order = declined(client)
    number = order_number(UUID(str(order)))
    Task.objects.filter(workflow=EMAIL_WORKFLOW).update(label=number)
    task = Task.objects.get(workflow=WORKFLOW, reference=str(order))
    viewer = browser(person("vic", "operate"))
    apart = number.replace("-", " ").lower()
    for typed in (number, number.replace("-", "").lower(), apart, str(order), str(task.id)):
        opened = viewer.get("/ops/tasks/", {"q": typed, "open": "1"})
        assert (opened.status_code, opened["Location"]) == (303, f"/ops/tasks/{task.id}/"), typed
        assert viewer.get("/ops/tasks/", {"q": typed}).status_code == 200
    for typed in (number[:6], f"{number} {order}x", f"{number} state:error", "state:error"):
        opened = viewer.get("/ops/tasks/", {"q": typed, "open": "1"})
        assert opened["Location"].startswith("/ops/tasks/?q="), typed
