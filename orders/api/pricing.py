"""What a new order costs by today's prices, with shipping, tax and discount."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orders.currency import shop_currency
from orders.lifecycle import discounts, gift_cards
from orders.models import Product
from orders.shop.cart import PricedCart, PricedLine
from orders.shop.quote import Quote
from orders.shop.tariff import tariff

from . import schemas
from .problems import FieldError, Problem, conflict, invalid

# plain SQL: the ORM took longer to build it than the database to run it
PRODUCTS = """
SELECT p.*, coalesce((
    SELECT d.price FROM orders_datedprice d
    WHERE d.product_id = p.sku AND d.currency = p.currency AND d.starts_at <= now()
    ORDER BY d.starts_at DESC LIMIT 1
), p.price) AS due
FROM orders_product p WHERE p.sku = ANY(%s) AND p.active AND p.currency = %s
"""


def quote_of(order: schemas.NewOrder, application: str) -> Quote:
    """Price an order with shipping, tax and discount, and see what its gift card can pay.

    Raises `discounts.NotValid` or `gift_cards.NotValid` for its codes. The application's tries are counted.
    """
    quote = Quote(_price(order), tariff(order.address.country))
    if order.discount_code:
        quote = replace(quote, discount=quote.discounted(order.discount_code, order.email))
    if order.gift_card:
        if not gift_cards.GUESSES.allows(f"application {application}"):
            raise gift_cards.NotValid(gift_cards.GUESSES.refusal_text)
        quote = replace(quote, balance=quote.payable(order.gift_card))
    return quote


def check_each_once(lines: Sequence[schemas.NewLine], part: str = "lines") -> None:
    """Raise `Problem` for a product that is on two lines of the field `part`."""
    names = [line.sku for line in lines]
    if twice := [number for number, name in enumerate(names) if name in names[:number]]:
        raise invalid(
            [field_error(f"{part}.{n}.sku", ["A product may be on one line only."]) for n in twice]
        )


def _price(order: schemas.NewOrder) -> PricedCart:
    """Price the lines; raise `Problem` for a product that is not sold, or on two lines."""
    check_each_once(order.lines)
    names = [line.sku for line in order.lines]
    products = {
        product.sku: product for product in Product.objects.raw(PRODUCTS, [names, shop_currency()])
    }
    if gone := [number for number, name in enumerate(names) if name not in products]:
        errors = [field_error(f"lines.{n}.sku", [f"Unknown product {names[n]!r}."]) for n in gone]
        raise conflict("not_sold", errors[0].message, errors=[vars(error) for error in errors])
    return PricedCart(tuple(PricedLine(products[line.sku], line.quantity) for line in order.lines))


def field_error(name: str, errors: Any) -> FieldError:
    """Return the errors of a form's field, under its path in the body."""
    inside = "address." if name in schemas.Address.model_fields else ""
    return FieldError(field=f"{inside}{name}", message=" ".join(map(str, errors)))


def line_json(line: PricedLine) -> dict[str, Any]:
    """Return a line as answers have it."""
    product = line.product
    return {"sku": product.sku, "name": product.name, "quantity": line.quantity,
            "unit_price": product.due, "price": line.price}  # fmt: skip


def no_gift_card(refusal: gift_cards.NotValid) -> Problem:
    """Return the problem of a gift card that cannot pay."""
    error = field_error("gift_card", [refusal])
    return conflict("no_gift_card", str(refusal), errors=[vars(error)])


def no_discount(refusal: discounts.NotValid) -> Problem:
    """Return the problem of a code that cannot be used."""
    error = field_error("discount_code", [refusal])
    return conflict("no_discount", str(refusal), errors=[vars(error)])
