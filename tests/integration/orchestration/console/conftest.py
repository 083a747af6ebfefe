"""Fixtures of the tests of the dashboard."""

from dataclasses import replace

import pytest

from orchestration import registry
from orchestration.api import field
from tests.support.engine import new_task
from tests.support.operators import operator


@pytest.fixture
def client():
    """An operator who may resubmit, but not read personal data."""
    return operator()


@pytest.fixture
def three(monkeypatch):
    """Three tasks with a value each."""
    known = replace(
        registry.workflows["greet"],
        contact=field("name"),
        value={"amount": field("cents"), "currency": field("money")},
    )
    monkeypatch.setitem(registry.workflows, "greet", known)
    for name, cents in (("b-20", 2000), ("a-5", 500), ("c-9", 900)):
        new_task(name, data={"name": f"{name}@x.example", "cents": cents, "money": "EUR"})
