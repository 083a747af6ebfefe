"""Fixtures of the tests of subscriptions."""

import pytest

from tests.support.subscriptions import shelf


@pytest.fixture(autouse=True)
def _shelf(db):
    shelf()
