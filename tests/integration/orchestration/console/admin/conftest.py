"""Fixtures of the tests of the engine's admin."""

import pytest

from tests.support.operators import browser, person


@pytest.fixture
def client():
    return browser(person("ada", is_staff=True, is_superuser=True))
