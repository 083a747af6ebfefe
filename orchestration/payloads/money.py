"""Amounts of money in minor units (cents): how many digits these are, and how people read them."""

from decimal import Decimal

from django.utils.formats import number_format
from django.utils.translation import get_language

MOST = 2  # digits after the point, of nearly all currencies
NONE = (
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV",
    "XAF", "XOF", "XPF",
)  # fmt: skip
THREE = ("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND")
# ISO 4217. Babel's digits are CLDR's: no minor unit for RSD or IQD, so an amount would be wrong.
DIGITS = {**dict.fromkeys(NONE, 0), **dict.fromkeys(THREE, 3)}
SYMBOLS = {"EUR": "€", "GBP": "£", "JPY": "¥", "USD": "$"}


def digits(currency: str) -> int:
    """Return how many digits after the point a currency's minor unit is."""
    return DIGITS.get(currency.upper(), MOST)


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
