"""The agents of functions, declared while a test runs."""

from importlib import import_module

import pytest

from orchestration import registry
from orchestration.workers import jobs
from tests.support import functions


@pytest.fixture(autouse=True)
def _declared(monkeypatch):
    for table in ("agents", "workflows"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    import_module("orchestration.functions.workflow").declare()
    functions.FAILURES.clear()
    yield
    jobs.close_runtimes()
