"""Fixtures of the shop's tests."""

import pytest

from tests.support.shop import products


@pytest.fixture
def shelf(db):
    """Three products, as `products` makes them."""
    return products()
