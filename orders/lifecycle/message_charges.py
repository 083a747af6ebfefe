"""The part of an order's message with what it costs beyond its lines."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from orders.charges import NONE, WHOLE, Charges, Priced, Tax, taxes
from orders.currency import LARGEST_TOTAL

from .fields import Malformed, check_fields, integer, text


def read_charges(value: Any, lines: Sequence[Priced], emailed: Collection[str] = ()) -> Charges:
    """Return the charges in a message; raise `Malformed` unless they fit its lines.

    None: there are none, as in messages of older releases.
    """
    if value is None:
        return NONE
    check_fields(value, "the charges", "shipping discount code percent rates taxes")
    subtotal = sum(line.price for line in lines)
    shipping = integer(value["shipping"], "shipping", least=0, most=LARGEST_TOTAL)
    discount = integer(value["discount"], "discount", least=0, most=subtotal)
    rates = _rates(value["rates"], {line.sku for line in lines})
    charges = Charges(
        shipping=shipping,
        discount=discount,
        code=text(value["code"], "code") if discount or value["code"] else "",
        percent=integer(value["percent"], "percent", least=0, most=WHOLE),
        rates=rates,
        taxes=_taxes(value["taxes"]),
    )
    if charges.taxes != (due := taxes(lines, rates, charges.extra, emailed)):
        raise Malformed(f"taxes are {value['taxes']!r}, but by the rates they are {due}")
    return charges


def _rates(value: Any, skus: set[str]) -> dict[str, int]:
    if not isinstance(value, Mapping) or not value.keys() <= skus:
        raise Malformed(f"rates are {value!r}; they must be of products on the lines")
    return {sku: integer(rate, "rate", most=WHOLE) for sku, rate in value.items()}


def _taxes(value: Any) -> tuple[Tax, ...]:
    if not isinstance(value, list):
        raise Malformed(f"taxes are {value!r}; they must be a list")
    for tax in value:
        check_fields(tax, "a tax", "rate net tax")
    return tuple(
        Tax(
            rate=integer(tax["rate"], "rate", most=WHOLE),
            net=integer(tax["net"], "net", least=0, most=LARGEST_TOTAL),
            tax=integer(tax["tax"], "tax", least=0, most=LARGEST_TOTAL),
        )
        for tax in value
    )
