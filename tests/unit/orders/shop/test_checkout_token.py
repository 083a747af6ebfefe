"""The checkout's token, the cart and the form to find an order."""

from uuid import uuid4

import pytest
from django.core import signing

from orders.models import Product
from orders.shop import checkout_token
from orders.shop.cart import BadQuantity, Cart, PricedCart, PricedLine, read_quantity
from orders.shop.checkout_token import BadToken, Token, read_token
from orders.shop.find_form import FindForm
from orders.shop.quote import Quote
from orders.shop.tariff import Tariff


def priced(price=950, quantity=2):
    product = Product(sku="a", name="Coffee", price=price)
    product.due = price
    cart = PricedCart((PricedLine(product, quantity),))
    return Quote(cart, Tariff(country="CH", rates={}))


def test_token_round_trip():
    token = Token.offer(uuid4(), priced())
    assert read_token(token.sign()) == token
    assert token.total == 1900


@pytest.mark.parametrize("other", [priced(price=1), priced(quantity=1)])
def test_token_differs_by_price_and_quantity(other):
    order = uuid4()
    assert Token.offer(order, other) != Token.offer(order, priced())


def test_token_that_is_altered_or_foreign():
    text = Token.offer(uuid4(), priced()).sign()
    foreign = signing.dumps({"order": str(uuid4()), "cart": "x", "total": 1}, salt="another")
    for bad in ("", "x", text[:-1], "A" + text, text.replace(":", ".", 1), foreign):
        with pytest.raises(BadToken, match="altered or is incomplete"):
            read_token(bad)


def test_token_expires_after_a_day(monkeypatch):
    text = Token.offer(uuid4(), priced()).sign()
    monkeypatch.setattr(checkout_token, "LIFE", -1)
    with pytest.raises(BadToken, match="more than a day old"):
        read_token(text)


def test_token_agreement_depends_on_offer_and_details():
    token = Token.offer(uuid4(), priced())
    details = {"name": "Ada", "city": "Genève"}
    assert token.agreed(details) == token.agreed(dict(reversed(details.items())))
    assert token.agreed(details) != token.agreed({**details, "city": "Bern"})
    assert token.agreed(details) != Token.offer(token.order, priced(price=1)).agreed(details)


@pytest.mark.parametrize("text", ["1", " 7 ", "99", "007"])
def test_quantity_is_read(text):
    assert read_quantity(text) == int(text)


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "100", "1e3", "1.5", "two", "²", "٣", "9" * 5000, "1 2", "+1", "\0"]
)
def test_quantity_that_is_invalid(text):
    with pytest.raises(BadQuantity):
        read_quantity(text)


def test_cart_id_changes_with_the_content():
    session = {}
    cart = Cart(session)
    assert cart.id is None
    cart.add("a", 2)
    first = cart.id
    assert Cart(session).id == first
    cart.add("a", 1)
    assert cart.id != first
    assert Cart(session).quantities == {"a": 3}
    cart.change("a", 0)
    assert cart.id is None


def test_cart_limits():
    cart = Cart({})
    cart.add("a", 99)
    with pytest.raises(BadQuantity, match="at most 99"):
        cart.add("a", 1)
    for number in range(49):
        cart.add(f"sku-{number}", 1)
    with pytest.raises(BadQuantity, match="at most 50"):
        cart.add("sku-50", 1)


@pytest.mark.parametrize("typed", ["7KQ4M-9XD2P", "7kq4m 9xd2p", "7KQ4M9XD2P", " 7kq4m-9xd2p "])
def test_order_number_typed_loosely(typed):
    form = FindForm({"number": typed, "email": "ada@example.org"})
    assert form.is_valid()
    assert form.cleaned_data["number"] == "7KQ4M-9XD2P"


def test_order_number_with_misread_letters():
    form = FindForm({"number": "OIL00-00000", "email": "ada@example.org"})
    assert form.is_valid()
    assert form.cleaned_data["number"] == "01100-00000"
