"""Amounts of money in minor units, as people read them."""

from decimal import Decimal

from django.utils.formats import number_format
from django.utils.translation import get_language

from .currencies import SYMBOLS, digits


def format_money(amount: int, currency: str) -> str:
    """Return an amount as the active language writes it: 123450 of EUR → "€1,234.50", "1.234,50 €".

    >>> format_money(123450, "EUR"), format_money(500, "JPY")
    ('€1,234.50', '¥500')
    """
    code, places = currency.upper(), digits(currency)
    number = number_format(Decimal(abs(amount)).scaleb(-places), places, force_grouping=True)
    sign = "-" if amount < 0 else ""
    if (get_language() or "en").startswith("en"):
        return f"{sign}{SYMBOLS.get(code, f'{code} ')}{number}"
    return f"{sign}{number}\u202f{SYMBOLS.get(code, code)}"  # a narrow space that does not break
