"""Fixtures of the tests of the stock."""

import pytest

from tests.support.shop import products
from tests.support.stock import inventory


@pytest.fixture(autouse=True)
def _shelf(db):
    products()


@pytest.fixture
def port(run, tmp_path, monkeypatch):
    """The port of an inventory, which the shop's own agent calls."""
    stock = {"sku_0": {"main": 15, "south": 4}, "sku_1": 2, "unknown": 9}
    with inventory(tmp_path, monkeypatch, **stock) as port:
        run.real("inventory")
        yield port
