"""Amounts of a currency with 0, 2 or 3 digits: as people type them, and within its bounds."""

from decimal import Decimal

import pytest
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.utils import translation

from orders.amount_fields import ScaledField
from orders.money import as_decimal, largest_price, whole, whole_money
from sasweb import env


@pytest.mark.parametrize(
    ("currency", "cheap", "most", "english", "german"),
    [
        ("EUR", "9.50", 1_000_000, "€10", "10\u202f€"),
        ("JPY", "950", 1_000_000, "¥1,000", "1.000\u202f¥"),
        ("KWD", "0.950", 10_000_000, "KWD 10", "10\u202fKWD"),
    ],
)
def test_currency_with_its_digits(settings, currency, cheap, most, english, german):
    settings.CURRENCY = currency
    assert as_decimal(950) == Decimal(cheap)
    assert str(as_decimal(950)) == cheap
    assert largest_price() == most == 10_000 * whole()
    for language, text in (("en", english), ("de", german)):
        with translation.override(language):
            assert whole_money(10) == text


@pytest.mark.parametrize(
    ("digits", "typed", "stored"),
    [(2, "12.50", 1250), (2, "12.5", 1250), (2, "12", 1200), (0, "950", 950), (3, "0.001", 1)],
)
def test_amount_is_read_as_people_write_it(digits, typed, stored):
    field = ScaledField(digits=digits, least=1, most=1_000_000)
    assert field.clean(typed) == stored
    assert not field.has_changed(stored, typed)
    assert field.has_changed(stored + 1, typed)
    assert field.clean(str(field.prepare_value(stored))) == stored


@pytest.mark.parametrize(
    ("digits", "typed"),
    [(2, "12.505"), (2, "-1"), (2, "0"), (2, "10000.01"), (0, "9.5"), (2, "1e9"), (2, "NaN")],
)
def test_amount_that_is_none(digits, typed):
    with pytest.raises(ValidationError):
        ScaledField(digits=digits, least=1, most=1_000_000).clean(typed)


@pytest.mark.parametrize("code", ["EURO", "€", "E1R", "ÄÖÜ"])
def test_setting_of_an_unknown_currency(monkeypatch, code):
    monkeypatch.setenv("CURRENCY", code)
    with pytest.raises(ImproperlyConfigured, match="not the code of a currency"):
        env.currency("CURRENCY", "EUR")
