"""Fixtures of the tests of the dashboard."""

import pytest

from tests.support.operators import operator


@pytest.fixture
def client():
    """An operator who may resubmit, but not read personal data."""
    return operator()
