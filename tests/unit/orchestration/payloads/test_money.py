"""Amounts are written with as many digits as their currency has, as the language does."""

import pytest
from django.utils import translation

from orchestration.payloads.money import format_money


@pytest.mark.parametrize(
    ("amount", "currency", "english", "german"),
    [
        (123_450, "EUR", "€1,234.50", "1.234,50\u202f€"),
        (0, "EUR", "€0.00", "0,00\u202f€"),
        (5, "eur", "€0.05", "0,05\u202f€"),
        (-250, "EUR", "-€2.50", "-2,50\u202f€"),
        (999, "CHF", "CHF 9.99", "9,99\u202fCHF"),
        (5000, "JPY", "¥5,000", "5.000\u202f¥"),
        (1_234_567, "KWD", "KWD 1,234.567", "1.234,567\u202fKWD"),
    ],
)
def test_format_money_in_each_language(amount, currency, english, german):
    for language, expected in (("en", english), ("de", german)):
        with translation.override(language):
            assert format_money(amount, currency) == expected
