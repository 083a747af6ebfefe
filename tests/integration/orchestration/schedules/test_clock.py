"""Schedules beside jumps of the database's clock: nothing twice, nothing silent for long."""

from datetime import timedelta

import pytest

from orchestration import api
from orchestration.cluster.leader_memory import Memory
from orchestration.database import sql
from orchestration.housekeeping import housekeeper
from orchestration.models import ClockJump, Schedule, Task
from orchestration.testing.fake_clock import SET
from orchestration.testing.outcomes import done
from orchestration.transitions.clock_jump import allow_for_jump

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_schedules")]
HOUR = timedelta(hours=1)


@pytest.fixture
def hourly(run):
    """A schedule that ran at its first due time; return that."""
    run.script("greeter.greet", done(id="g1"))
    start = (run.clock.now + timedelta(seconds=10)).replace(microsecond=0)
    api.schedule("hourly", workflow="greet", data={"name": "Ada"}, every=3600, start_at=start)
    run.wait(11)
    assert Task.objects.count() == 1
    return start


def jump(run, seconds):
    """Set the clock, have a supervisor handle that, and do what is due."""
    run.clock.now += timedelta(seconds=seconds)  # which may be back
    sql.run(SET, {"now": run.clock.now.isoformat()})
    handled = sum(ClockJump.objects.values_list("seconds", flat=True))
    assert allow_for_jump(float(seconds), handled=handled, since=1.0, by="supervisor-1")
    run._staff()
    run._memories["housekeeper"] = Memory()
    run.go()


def due():
    return sorted(Task.objects.values_list("reference", flat=True))


def test_clock_that_goes_forward_is_as_an_outage(run, hourly):
    jump(run, 5 * 3600)
    assert Task.objects.count() == 2  # the last one of those passed
    row = Schedule.objects.get()
    assert (row.last_due, row.missed, row.due_at) == (hourly + 5 * HOUR, 4, hourly + 6 * HOUR)


def test_clock_that_goes_back_runs_nothing_twice_and_goes_on_by_its_time(run, hourly):
    run.wait(2 * 3600)
    known = due()
    assert len(known) == 3
    jump(run, -2 * 3600)
    row = Schedule.objects.get()
    assert row.due_at == hourly + HOUR
    run.wait(2 * 3600)
    assert due() == known
    run.wait(3600)
    assert len(due()) == 4


def test_clock_that_was_a_year_ahead_does_not_silence_a_schedule(run, hourly):
    jump(run, 365 * 86_400)
    assert Schedule.objects.get().due_at > hourly + 365 * 24 * HOUR
    ahead = len(due())
    jump(run, -365 * 86_400)
    assert Schedule.objects.get().due_at == hourly + HOUR
    run.wait(3600)
    assert len(due()) == ahead + 1


def test_paused_schedule_stays_paused_when_the_clock_goes_back(run, hourly):
    row = Schedule.objects.get()
    row.paused = True
    row.save()
    jump(run, -7200)
    assert Schedule.objects.get().look_at is None
    assert housekeeper.SUBMIT_SCHEDULED in housekeeper.DUTIES
