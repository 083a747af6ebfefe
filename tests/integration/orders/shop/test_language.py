"""The shop in the visitor's language and time zone; staff pages in English."""

import re
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orchestration import submission
from orders.lifecycle.access import link
from orders.management.commands.seed import add_products
from orders.models import Order, Product
from orders.times import shop_zone
from tests.support.page import elements
from tests.support.shop import (
    buy,
    declined,
    order_page,
    poll_address,
    posted,
    sold_out,
    visit,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf")]
GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de-CH, de;q=0.9, en;q=0.5"}
PAGES = ("/", "/cart/", "/orders/find/", "/account/sign-in/", "/account/sign-up/", "/nowhere/")


@pytest.mark.parametrize("path", PAGES)
def test_language_of_the_browser(path):
    german, english = Client(**GERMAN).get(path).text, Client().get(path).text
    assert '<html lang="de">' in german
    assert '<html lang="en">' in english
    title = re.compile("<title>(.*)</title>")
    assert path == "/" or title.search(german)[1] != title.search(english)[1]


def test_language_chosen_overrides_the_browsers():
    client = Client(**GERMAN)
    response = client.post("/language/", {"language": "en", "next": "/cart/?x=1"})
    assert (response.status_code, response["Location"]) == (302, "/cart/?x=1")
    cart = visit(client, "/cart/")
    assert "Your cart is empty" in cart
    assert "Deutsch</button>" in cart  # each language has its own name
    evil = client.post("/language/", {"language": "de", "next": "https://evil.example/"})
    assert evil["Location"] == "/"
    assert "Ihr Warenkorb ist leer" in client.get("/cart/").text


def test_language_unknown_is_english():
    assert '<html lang="en">' in Client(headers={"accept-language": "tlh, *"}).get("/").text


def test_language_of_staff_pages_is_english():
    User.objects.create_superuser("root", password="x")
    client = Client(**GERMAN)
    assert '<html lang="en">' in client.get("/login/").text
    client.force_login(User.objects.get(), backend="django.contrib.auth.backends.ModelBackend")
    assert "Settings and records" in client.get("/admin/").text
    assert '<html lang="en">' in client.get("/ops/").text


def test_language_of_an_order_and_its_emails(run):
    client = Client(**GERMAN)
    order = declined(client)
    assert Order.objects.get(id=order).language == "de"
    seen = order_page(client, order)
    assert "Ihre Karte wurde abgelehnt. Es wurde nichts abgebucht." in seen
    assert "Mit einer anderen Karte zahlen" in seen
    (letter,) = posted("action-needed")  # written by a process without a request
    assert letter["subject"].endswith("braucht Ihre Entscheidung")
    assert "Wir halten Ihre Bestellung bis" in letter["text"]
    client.post(f"/orders/{order}/cancel/")
    assert "Wir haben Ihre Stornierung weitergegeben" in order_page(client, order)
    run.go()
    (letter,) = posted("cancelled")
    assert "Ihre Bestellung wurde storniert. Es wurde nichts abgebucht." in letter["html"]


def test_language_of_fixes():
    client = Client(**GERMAN)
    order = sold_out(client)
    assert "Product 1 ist ausverkauft" in order_page(client, order)
    again = client.post(f"/orders/{order}/wait/", {"attempt": 7})
    assert "Das ist schon geschehen" in again.text


def test_times_in_the_visitors_zone():
    client = Client()
    order = buy(client)
    submission.take(100)
    placed = Order.objects.get(id=order).created_at
    moment = re.compile(r"<time[^>]*>([^<]+)<")

    def shown(zone):
        client.cookies["zone"] = zone
        return moment.search(order_page(client, order))[1]

    for zone in ("Asia/Tokyo", "Europe/Berlin"):
        assert f"{placed.astimezone(ZoneInfo(zone)):%H:%M}" in shown(zone)
    for elsewhere in ("UTC", "Europe", ""):  # in none: the shop's
        assert f"{placed.astimezone(shop_zone()):%Y, %H:%M}" in shown(elsewhere)


def test_poll_shows_times_in_a_zone_that_the_browser_sent_meanwhile():
    client = Client()
    poll = poll_address(order_page(client, buy(client)))
    assert client.get(poll).status_code == 204
    client.cookies["zone"] = "Asia/Tokyo"
    assert "JST" in client.get(poll).text


def test_products_in_the_visitors_language():
    add_products()
    Product.objects.create(
        sku="own",
        slug="own",
        name="Cups & saucers",
        kind="Tea",
        summary="",
        description="-",
        price=1,
    )
    german = Client(**GERMAN)
    grid = german.get("/").text
    shelves = [option.text for option in elements(grid).only("#id_kind").all("option")]
    assert {"Kaffee", "Tee", "Zubereitung", "Tisch"} < set(shelves)
    assert "Gartenminze" in grid
    assert "Garden Mint" not in grid
    assert "Cups &amp; saucers" in grid
    html = visit(german, "/products/garden-mint/")
    assert "Pfefferminze und Grüne Minze" in html
    assert "Ganze Blätter" in html
    for word in ("gartenMINZE", "Mint"):  # the German name and the English one
        assert "Gartenminze" in german.get("/", {"q": word}).text
    assert "Gartenminze" not in german.get("/", {"q": "Espresso"}).text
    assert "Garden Mint" not in Client().get("/", {"q": "Gartenminze"}).text
    order = buy(german, tea_mint=2)
    submission.take(10)
    assert "Gartenminze<" in order_page(german, order)
    assert "Garden Mint<" in visit(Client(), link(order))
