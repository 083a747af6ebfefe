"""Tasks that are submitted by the calendar."""

from datetime import timedelta

import pytest

from orchestration import registry
from orchestration.models import Schedule, Task
from orchestration.transitions import holds

DAY = 86_400.0


def reports(**fields):
    return Task.objects.filter(workflow="report", **fields)


@pytest.fixture
def nights(page, request):
    """Let time pass until just after the next report is due."""
    registry.schedules.update(page["scheduled"])
    shop = request.getfixturevalue("shop")  # a run has what is declared before
    shop.go()
    now = shop.clock.now
    due = now.replace(hour=2, minute=0, second=0, microsecond=0)
    due += timedelta(days=due <= now)
    shop.wait((due - now).total_seconds() + 60)
    return shop


def test_each_night_has_one_report(nights):
    assert reports().count() == 1
    nights.wait(3 * DAY)
    assert reports().count() == 4
    assert {task.state for task in reports()} == {"processed"}


def test_report_that_still_runs_has_the_next_one_skipped(nights):
    pause = holds.hold(agent="mail_service", actor="ann", reason="it is slow")
    nights.wait(2 * DAY)
    assert (reports().count(), Schedule.objects.get(name="nightly").skipped) == (2, 1)
    holds.release(pause.id, actor="ann", reason="it is quick again")
    nights.wait(DAY)
    assert reports(state="processed").count() == 3


def test_last_report_of_an_outage_is_caught_up_alone(nights):
    nights.clock.move(3.5 * DAY)  # nothing runs meanwhile
    nights.go()
    assert reports().count() == 2
