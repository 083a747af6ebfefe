"""What an order costs beyond its lines, and the tax in it: shipping, a discount, VAT by rate. Pure functions.

Prices include the tax. Amounts are whole minor units and rates hundredths of a percent, so sums are exact
in currencies with any number of digits.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

WHOLE = 100_00  # a hundred percent


class Priced(Protocol):
    """A line of a cart or an order."""

    @property
    def sku(self) -> str:
        """The product."""

    @property
    def price(self) -> int:
        """What the line costs."""


@dataclass(frozen=True, kw_only=True)
class Tax:
    """The tax of one rate: `net` is what it is of."""

    rate: int
    net: int
    tax: int

    @property
    def gross(self) -> int:
        """What is paid at this rate, tax included."""
        return self.net + self.tax


@dataclass(frozen=True, kw_only=True)
class Discount:
    """A reduction by a code: `percent` of the goods in hundredths, or `amount` if that is 0."""

    code: str = ""
    percent: int = 0
    amount: int = 0

    def of(self, subtotal: int) -> int:
        """Return what it takes off goods of this price."""
        return _rounded(subtotal * self.percent, WHOLE) if self.percent else self.amount


@dataclass(frozen=True, kw_only=True)
class Charges:
    """What an order costs beyond its lines; `rates` has the tax rates of products that bear tax.

    `discount` was taken off by the code `code`, which is of `percent` of the goods unless that is 0.
    """

    shipping: int = 0
    discount: int = 0
    code: str = ""
    percent: int = 0
    rates: Mapping[str, int] = field(default_factory=dict)
    taxes: tuple[Tax, ...] = ()

    @property
    def tax(self) -> int:
        """The tax of all rates."""
        return sum(tax.tax for tax in self.taxes)

    @property
    def extra(self) -> int:
        """What comes to the price of the lines; less than nothing with a large discount."""
        return self.shipping - self.discount

    def of_fewer(
        self, lines: Sequence[Priced], *, free: bool = False, emailed: Collection[str] = ()
    ) -> "Charges":
        """Return the charges if these lines are left: shipping and discount stay as agreed.

        What was paid for does not become free: the payment that was authorized is captured.
        """
        subtotal = sum(line.price for line in lines)
        most = Discount(code=self.code, percent=self.percent, amount=self.discount).of(subtotal)
        least = 0 if free else 1
        off = Discount(code=self.code, amount=min(most, subtotal + self.shipping - least))
        left = charge(
            lines, shipping=self.shipping, discount=off, rates=self.rates, emailed=emailed
        )
        return replace(left, percent=self.percent)

    def as_json(self) -> dict[str, Any]:
        """Return JSON; nothing for an order without charges, as the former release reads it."""
        return {**asdict(self), "taxes": list(map(asdict, self.taxes))} if self != NONE else {}


NONE = Charges()


def from_json(value: Mapping[str, Any] | None) -> Charges:
    """Return the charges in a row, or in a message that was checked."""
    if not value:
        return NONE
    return Charges(**{**value, "taxes": tuple(Tax(**tax) for tax in value["taxes"])})


def charge(
    lines: Sequence[Priced],
    *,
    shipping: int = 0,
    discount: Discount | None = None,
    rates: Mapping[str, int],
    emailed: Collection[str] = (),
) -> Charges:
    """Return the charges of lines, whose products have these tax rates; `emailed` are not shipped.

    A discount takes off no more than the goods cost.
    """
    reduced = discount or Discount()
    subtotal = sum(line.price for line in lines)
    off = max(0, min(reduced.of(subtotal), subtotal))
    taxed = {line.sku: rates[line.sku] for line in lines if rates.get(line.sku)}
    return Charges(
        shipping=shipping,
        discount=off,
        code=reduced.code,
        percent=reduced.percent,
        rates=taxed,
        taxes=taxes(lines, taxed, shipping - off, emailed),
    )


def taxes(
    lines: Sequence[Priced], rates: Mapping[str, int], extra: int, emailed: Collection[str] = ()
) -> tuple[Tax, ...]:
    """Return the tax in lines and what comes to them, highest rate first, each rounded once.

    Shipping and discounts bear the rates of the goods, in proportion to their prices: they are ancillary
    to them by EU law (case C-349/96, Card Protection Plan). Goods without tax have no row. What is e-mailed
    has no part in shipping.
    """
    goods: dict[int, int] = {}
    shipped: dict[int, int] = {}
    for line in lines:
        rate = rates.get(line.sku, 0)
        goods[rate] = goods.get(rate, 0) + line.price
        shipped[rate] = shipped.get(rate, 0) + (0 if line.sku in emailed else line.price)
    ordered = dict(sorted(goods.items(), reverse=True))
    shares = distribute(extra, [shipped[rate] for rate in ordered])
    return tuple(
        included(rate, price + share)
        for (rate, price), share in zip(ordered.items(), shares, strict=True)
        if rate
    )


def included(rate: int, gross: int) -> Tax:
    """Return the tax that is in an amount."""
    tax = _rounded(gross * rate, WHOLE + rate)
    return Tax(rate=rate, net=gross - tax, tax=tax)


def distribute(amount: int, weights: Sequence[int]) -> list[int]:
    """Return shares of an amount in proportion to weights; they add up to it, if there are any weights.

    >>> distribute(100, [1, 1, 1]), distribute(-5, [3, 7])
    ([33, 34, 33], [-1, -4])
    """
    whole, shares, before, past = sum(weights), [], 0, 0
    for weight in weights:
        past += weight
        until = _rounded(amount * past, whole) if whole else 0
        shares.append(until - before)
        before = until
    return shares


def _rounded(number: int, by: int) -> int:
    """Return a quotient, rounded half up as tax offices do."""
    return (2 * number + by) // (2 * by)
