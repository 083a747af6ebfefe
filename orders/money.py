"""Amounts in the shop's currency: how many digits they have, how much is usual, and how people write them.

Everywhere else amounts are whole numbers of the currency's minor unit: cents of EUR, yen, fils of KWD.
"""

import re
from decimal import Decimal

from orchestration.api import currency_digits, format_money

from .currency import shop_currency


def whole(currency: str = "") -> int:
    """Return the minor units of about a euro or a dollar; prices without decimals are a hundred times higher.

    >>> whole("EUR"), whole("JPY"), whole("KWD")
    (100, 100, 1000)
    """
    return int(10 ** (currency_digits(currency or shop_currency()) or 2))


def largest_price(currency: str = "") -> int:
    """Return the most that one unit of a product costs, in minor units: EUR 10,000.00, JPY 1,000,000."""
    return 10_000 * whole(currency)


def as_decimal(amount: int, currency: str = "") -> Decimal:
    """Return an amount as people write it: 1250 of EUR → 12.50."""
    return Decimal(amount).scaleb(-currency_digits(currency or shop_currency()))


def hundredths(number: int) -> Decimal:
    """Return a number of hundredths, such as basis points, as people write it: 1950 → 19.50."""
    return Decimal(number).scaleb(-2)


def whole_money(number: int) -> str:
    """Return an amount of `number` times `whole`, without decimals: €10, ¥1,000, KWD 10."""
    text = format_money(number * whole(), shop_currency())
    places = currency_digits(shop_currency())
    return re.sub(rf"[.,]0{{{places}}}(?!\d)", "", text) if places else text
