"""The agents of functions, declared while a test runs."""

from importlib import import_module

import pytest

from orchestration import registry
from orchestration.workers import jobs
from tests.support import functions


@pytest.fixture(autouse=True)
def _declared(monkeypatch, settings):
    for table in ("agents", "workflows"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    queue = settings.RQ_QUEUES["scheduler"]
    settings.RQ_QUEUES = {**settings.RQ_QUEUES, "tasks.default": queue, "tasks.mail": queue}
    import_module("orchestration.functions.workflow").declare()
    functions.FAILURES.clear()
    yield
    jobs.close_runtimes()
