"""Amounts are written with as many digits as their currency has."""

import pytest

from orchestration.money import written


@pytest.mark.parametrize(
    ("amount", "currency", "expected"),
    [
        (123_450, "EUR", "1,234.50 EUR"),
        (5, "eur", "0.05 EUR"),
        (-5, "EUR", "-0.05 EUR"),
        (5000, "JPY", "5,000 JPY"),
        (1_234_567, "KWD", "1,234.567 KWD"),
    ],
)
def test_minor_units_are_written_as_people_read_them(amount, currency, expected):
    assert written(amount, currency) == expected
