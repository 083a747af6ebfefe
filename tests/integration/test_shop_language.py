"""The shop in the visitor's language and time; staff's pages in one."""

import re
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from orchestration import submission
from orders.access import link
from orders.management.commands.seed import add_products
from orders.models import Order, Product
from orders.money import money
from tests.shop import buy, carry_out, declined, finish_all, posted, products, sold_out

pytestmark = pytest.mark.django_db
GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de-CH, de;q=0.9, en;q=0.5"}
PAGES = ("/", "/cart/", "/orders/find/", "/account/sign-in/", "/account/sign-up/", "/nowhere/")


def text(response):
    return response.content.decode()


@pytest.fixture(autouse=True)
def _shop():
    products()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_in_the_language_that_the_browser_asks_for(path):
    german, english = text(Client(**GERMAN).get(path)), text(Client().get(path))
    assert '<html lang="de">' in german
    assert '<html lang="en">' in english
    title = re.compile("<title>(.*)</title>")
    assert path == "/" or title.search(german)[1] != title.search(english)[1]


def test_a_choice_outlives_what_the_browser_asks_for():
    client = Client(**GERMAN)
    response = client.post("/language/", {"language": "en", "next": "/cart/?x=1"})
    assert (response.status_code, response["Location"]) == (302, "/cart/?x=1")
    assert "Your cart is empty" in text(client.get("/cart/"))
    assert "Deutsch</button>" in text(client.get("/cart/"))  # each language by its own name
    evil = client.post("/language/", {"language": "de", "next": "https://evil.example/"})
    assert evil["Location"] == "/"
    assert "Ihr Warenkorb ist leer" in text(client.get("/cart/"))


def test_an_unknown_language_is_english():
    assert '<html lang="en">' in text(Client(headers={"accept-language": "tlh, *"}).get("/"))


def test_staff_have_one_language():
    User.objects.create_superuser("root", password="x")
    client = Client(**GERMAN)
    assert '<html lang="en">' in text(client.get("/login/"))
    client.force_login(User.objects.get(), backend="django.contrib.auth.backends.ModelBackend")
    assert "Settings and records" in text(client.get("/admin/"))
    assert '<html lang="en">' in text(client.get("/ops/"))


def test_amounts_are_written_as_each_language_does():
    with translation.override("en"):
        assert money(123450) == "€1,234.50"
    with translation.override("de"):
        assert money(123450) == "1.234,50\u202f€"
        assert money(-5, "CHF") == "-0,05\u202fCHF"


def test_an_order_and_its_letters_are_in_its_customers_language():
    client = Client(**GERMAN)
    order = declined(client)
    assert Order.objects.get(id=order).language == "de"
    seen = text(client.get(f"/orders/{order}/"))
    assert "Ihre Karte wurde abgelehnt. Es wurde nichts abgebucht." in seen
    assert "Mit einer anderen Karte zahlen" in seen
    (letter,) = posted("action-needed")  # written by a process that has no browser
    assert letter["subject"].endswith("braucht Sie")
    assert "Wir halten Ihre Bestellung bis" in letter["text"]
    client.post(f"/orders/{order}/cancel/")
    assert "Wir haben Ihre Stornierung weitergegeben" in text(client.get(f"/orders/{order}/"))
    carry_out()
    finish_all()
    (letter,) = posted("cancelled")
    assert "Ihre Bestellung wurde storniert. Es wurde nichts abgebucht." in letter["html"]


def test_what_can_be_done_is_offered_in_german():
    client = Client(**GERMAN)
    order = sold_out(client)
    assert "Product 1 ist ausverkauft" in text(client.get(f"/orders/{order}/"))
    again = client.post(f"/orders/{order}/wait/", {"attempt": 7})
    assert "Das ist schon geschehen" in text(again)


def test_times_are_the_visitors():
    client = Client()
    order = buy(client)
    submission.take(100)
    placed = Order.objects.get(id=order).created_at.astimezone(UTC)
    moment = re.compile(r"<time[^>]*>([^<]+)<")

    def shown(zone):
        client.cookies["zone"] = zone
        return moment.search(text(client.get(f"/orders/{order}/")))[1]

    for zone in ("Asia/Tokyo", "Europe/Berlin"):
        assert f"{placed.astimezone(ZoneInfo(zone)):%H:%M:%S}" in shown(zone)
    for nonsense in ("../../etc/passwd", "Europe", "x" * 500, ""):
        assert f"{placed:%H:%M:%S}" in shown(nonsense)


def test_products_are_told_and_found_in_the_visitors_language():
    add_products()
    Product.objects.create(
        sku="own", slug="own", name="Ours & yours", kind="Tea", summary="", description="-", price=1
    )
    german = Client(**GERMAN)
    grid = text(german.get("/"))
    assert "Gartenminze" in grid
    assert "Garden Mint" not in grid
    assert "Ours &amp; yours" in grid
    page = text(german.get("/products/garden-mint/"))
    assert "Pfefferminze und Grüne Minze" in page
    assert "Ganze Blätter" in page
    for word in ("gartenMINZE", "Mint"):  # as it is called here, and as others call it
        assert "Gartenminze" in text(german.get("/", {"q": word}))
    assert "Gartenminze" not in text(german.get("/", {"q": "Espresso"}))
    assert "Garden Mint" not in text(Client().get("/", {"q": "Gartenminze"}))
    order = buy(german, tea_mint=2)
    submission.take(10)
    assert "Gartenminze<" in text(german.get(f"/orders/{order}/"))
    assert "Garden Mint<" in text(Client().get(link(order)))
