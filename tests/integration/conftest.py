"""What all tests on a real database and Redis have in common."""

import pytest

from orchestration import conf, registry
from orchestration.models import Schedule
from tests.support.violations import violations


@pytest.fixture(autouse=True)
def _budgets_last(monkeypatch):
    """Let no budget of time run out because the machine is busy; a test of one sets its own."""
    for name in ("COMPUTE_BUDGET_S", "DUTY_BUDGET_S", "OPERATIONS_BUDGET_S", "SLOW_LOOK_S"):
        monkeypatch.setattr(conf, name, 60.0)


@pytest.fixture
def run(run):
    """A run of workflows whose tasks the audit finds sound."""
    yield run
    assert violations() == []


@pytest.fixture
def own_schedules(db, monkeypatch):
    """Have no schedules but those of the test: the shop declares one."""
    monkeypatch.setattr(registry, "schedules", {})
    for rows in (Schedule.objects.all(), Schedule.history.all()):
        rows._raw_delete(rows.db)  # without a trace in the history
