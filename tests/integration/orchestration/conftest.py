"""What tests of the engine have in common."""

import pytest


@pytest.fixture
def run(own_schedules, run):
    """A run in which days pass without the shop's schedule."""
    return run
