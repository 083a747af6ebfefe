"""The audit judges deadlines by the supervisor's last sweep: a clock that has just jumped proves nothing."""

import threading
from datetime import timedelta

import pytest
from django.db import connection

from drill.waiting import wait_for
from orchestration.assurance.audit import past, runner
from orchestration.database import sql
from orchestration.models import ClockJump, Lease, StatusMessage, Step, Task
from orchestration.models.fields import DatabaseNow
from tests.support.audit_rows import no_route, orders

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)
LOOKED = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query ILIKE '%%next_sweep_due%%'
"""
MISSED = "should have been mended"


@pytest.fixture(autouse=True)
def _jumped():
    """The clock has gone forward by an hour, and no supervisor has swept since."""
    orders(20, no_route()).write()
    Step.objects.filter(process_state="error").update(resolve_by=DatabaseNow() - HOUR / 2)
    swept(DatabaseNow() - HOUR)


def swept(at):
    Lease.objects.filter(name="supervisor").update(swept_at=at)


def audit():
    return runner.run("command", ledgers=False).violations


def missed(violations):
    return [breach for breach in violations if MISSED in breach.problem]


def test_run_waits_for_the_sweep_that_moves_the_deadlines():
    def supervise():
        try:
            wait_for(lambda: sql.run(LOOKED, {}), "the audit has looked for a sweep", 10)
            Step.objects.filter(process_state="error").update(resolve_by=DatabaseNow() + HOUR / 2)
            swept(DatabaseNow())
        finally:
            connection.close()

    supervisor = threading.Thread(target=supervise)
    supervisor.start()
    result = runner.run(runner.HOURLY)
    supervisor.join(20)
    assert result.tasks == 20
    assert not missed(result.violations)


def test_run_judges_by_the_clock_if_no_sweep_comes(monkeypatch):
    monkeypatch.setattr(past, "SWEEP_WITHIN_S", 0.1)
    assert missed(runner.run(runner.HOURLY).violations)


def test_scheduled_sweep_counts_until_the_next_is_due():
    Lease.objects.filter(name="supervisor").update(next_sweep_due=DatabaseNow() + HOUR)
    assert not missed(audit())
    swept(DatabaseNow())
    assert missed(audit())


@pytest.mark.parametrize(("jump", "count"), [(3600, 0), (None, 1), (-3600, 1)])
def test_message_is_not_as_old_as_the_clock_went_forward(jump, count):
    swept(DatabaseNow())
    task = Task.objects.filter(state="processing").first()
    StatusMessage.objects.create(
        task=task, reply_to="shop", number=9, kind="completed", created_at=DatabaseNow() - HOUR
    )
    if jump:
        ClockJump.objects.create(seconds=jump, by="supervisor-1")
    undelivered = [breach for breach in audit() if "has not been delivered" in breach.problem]
    assert len(undelivered) == count
