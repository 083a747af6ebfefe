"""Fixtures of the shop's tests."""

import pytest

from tests.support.shop import products, tax_rates


@pytest.fixture
def shelf(db):
    """Three products, as `products` makes them."""
    return products()


@pytest.fixture
def rates(db):
    """The tax rates of the countries with delivery."""
    tax_rates()
