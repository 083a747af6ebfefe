"""Formatters and files of the pages."""

import pytest

from sandbox.site import layout


def test_stylesheet_stays_small() -> None:
    assert len(layout.FILES["/sandbox.css"][0]) <= 6 * 1024


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 s"), (59.9, "59 s"), (130, "2 min 10 s"), (3661, "1 h 1 min"), (172_900, "2 days")],
)
def test_duration_has_two_units(seconds: float, words: str) -> None:
    assert layout.duration(seconds) == words


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (590, "eur", "€5.90"),
        (123450, "usd", "$1,234.50"),
        (5, "chf", "CHF 0.05"),
        (1500, "jpy", "¥1,500"),
        (1500, "kwd", "KWD 1.500"),
    ],
)
def test_money_has_the_sign_of_its_currency(amount: int, currency: str, text: str) -> None:
    assert layout.money(amount, currency) == text
