"""What customers get on paper and by e-mail: times in the shop's zone, and whose shop it is."""

import re

import pytest
from django.test import Client

from orchestration import submission
from tests.support.page import elements
from tests.support.shop import (
    buy,
    carry_out,
    declined,
    fill_cart,
    finish_all,
    open_checkout,
    order_in,
    order_page,
    posted,
    send,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf")]
SELLER = "Kettlewell, Lane 1, Bern"


@pytest.mark.parametrize(("language", "zone"), [("en", "CES?T"), ("de", "MES?Z")])
def test_letter_names_the_time_in_the_shops_zone(language, zone):
    client = Client(headers={"accept-language": language})
    client.cookies["zone"] = "Asia/Tokyo"  # which the process that writes letters does not know
    declined(client)
    (letter,) = posted("action-needed")
    (times,) = {
        tuple(re.findall(r"20\d\d, \d\d:\d\d (\S+?)\b", letter[kind])) for kind in ("text", "html")
    }
    assert all(re.fullmatch(zone, text) for text in times)
    assert times


def test_letter_and_page_say_whose_shop_it_is(settings):
    settings.SELLER_ADDRESS = SELLER
    client = Client()
    order = buy(client)
    (letter,) = posted("received")
    assert letter["text"].rstrip().endswith(SELLER)
    assert SELLER in letter["html"]
    assert elements(order_page(client, order)).only(".seller").text == SELLER
    settings.SELLER_ADDRESS = ""
    assert not elements(order_page(client, order)).all(".seller")


def test_address_is_escaped_on_pages_and_in_letters():
    client = Client()
    fill_cart(client, sku_0=1)
    order = order_in(send(client, open_checkout(client), name="<b>Ada</b>"))
    submission.take(10)
    (letter,) = posted("received")
    for html in (letter["html"], order_page(client, order)):
        assert "&lt;b&gt;Ada&lt;/b&gt;" in html
        assert "<b>Ada" not in html
    assert "<b>Ada</b>\n" in letter["text"]


def test_order_that_has_ended_offers_no_news():
    client = Client()
    order = buy(client)
    assert elements(order_page(client, order)).all("noscript")
    carry_out()
    finish_all()
    page = elements(order_page(client, order))
    assert page.only("#order-status")["data-final"] == "yes"
    assert not page.all("noscript")


@pytest.mark.parametrize(
    ("path", "kind", "begin"),
    [("/robots.txt", "text/plain", b"User-agent"), ("/favicon.ico", "image/", b"\0\0\1\0")],
)
def test_file_that_browsers_and_robots_ask_for(path, kind, begin):
    answer = Client().get(path)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith(kind)
    assert b"".join(answer.streaming_content).startswith(begin)
