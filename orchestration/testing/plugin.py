"""Fixtures for pytest: `pytest_plugins = ["orchestration.testing.plugin"]` in the root conftest.

It needs pytest-django, for the database.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from . import fake_clock
from .run import Run, running


@pytest.fixture(scope="session")
def sas_clock_functions(django_db_setup: None, django_db_blocker: Any) -> None:  # noqa: ARG001
    """Make the functions of the fake clock, once for the database of the tests."""
    with django_db_blocker.unblock():
        fake_clock.install()


@pytest.fixture
def run(sas_clock_functions: None, db: None) -> Iterator[Run]:  # noqa: ARG001 - they make the database
    """Run workflows in this process, on a fake clock: see docs/use/testing.md."""
    with running() as simulation:
        yield simulation
