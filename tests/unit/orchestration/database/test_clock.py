"""The database's clock, reckoned by a clock that no one sets; and whether it jumped."""

import pytest

from orchestration import conf
from orchestration.database import clock
from orchestration.database.clock_jumps import ClockWatch, Reading
from orchestration.models.fields import time_ordered_id

NOON = 1_800_000_000.0


class Times:
    """A process's clocks: `wall` can be set, `steady` only goes forward."""

    def __init__(self):
        self.wall, self.steady = NOON, 1000.0

    def pass_(self, seconds):
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def times(monkeypatch):
    times = Times()
    monkeypatch.setattr(clock, "_measured", None)
    monkeypatch.setattr(clock, "steady", lambda: times.steady)
    monkeypatch.setattr(clock.time, "time", lambda: times.wall)
    monkeypatch.setattr(clock.connection, "ensure_connection", lambda: None)
    return times


def test_clock_without_measurement_is_the_local_time(times):
    assert clock.now() == NOON


def test_clock_advances_from_the_last_measurement(times):
    clock.measure(lambda: NOON + 5)
    times.pass_(60)
    assert clock.now() == NOON + 65
    assert clock.lead() == 5


@pytest.mark.parametrize("jump", [300.0, -300.0])
def test_local_time_of_day_has_no_effect(times, jump):
    clock.measure(lambda: NOON)
    times.wall += jump
    assert clock.now() == NOON
    assert clock.lead() == -jump  # which people see
    made = time_ordered_id().int >> 80
    assert made == NOON * 1000


def test_half_the_round_trip_is_added(times):
    def ask():
        times.pass_(0.1)
        return NOON + 0.05

    clock.measure(ask)
    assert clock.now() == pytest.approx(NOON + 0.1)


def test_slow_answer_is_ignored_unless_it_is_the_first(times):
    def slow():
        times.pass_(10)
        return NOON + 19

    clock.measure(slow)
    assert clock.now() == NOON + 24
    clock.measure(lambda: NOON + 10)
    clock.measure(slow)
    assert clock.now() == NOON + 20


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_slow_answer_is_used_when_it_proves_the_clock_wrong(times, jump):
    clock.measure(lambda: NOON)

    def slow():
        times.pass_(0.25)
        return NOON + jump

    clock.measure(slow)
    assert clock.now() == pytest.approx(NOON + jump, abs=0.25)


def test_steady_clock_never_goes_back():
    first = clock.steady()
    assert clock.steady() >= first


class Database:
    """A database's clock that jumps, and a supervisor that reads it."""

    def __init__(self):
        self.watch = ClockWatch()
        self.steady, self.offset, self.handled = 50.0, NOON, 0.0

    def look(self, passed=1.0, *, trip=0.001, leading=True):
        self.steady += passed
        before = self.steady
        self.steady += trip
        self.watch.see(
            Reading(
                now=self.offset + self.steady, handled=self.handled, before=before,
                after=self.steady,
            ),
            leading=leading,
        )  # fmt: skip
        return self.watch.jump


@pytest.fixture
def database():
    database = Database()
    assert database.look() == 0.0
    return database


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 31.0, -31.0, -3.0])
def test_jump_is_reported_until_it_was_handled(database, jump):
    database.offset += jump
    assert database.look() == pytest.approx(jump, abs=0.01)
    assert database.look() == pytest.approx(jump, abs=0.01)
    assert database.watch.since == pytest.approx(2, abs=0.01)
    database.handled += database.watch.jump
    assert database.look() == 0.0


def test_small_deviations_are_not_a_jump(database):
    for _ in range(1000):
        database.offset += conf.CLOCK_JUMP_S / 2
        assert database.look() == 0.0
        database.offset -= conf.CLOCK_BACK_S / 2
        assert database.look() == 0.0


def test_jump_there_and_back_between_two_looks_is_ignored(database):
    database.offset += 3600
    database.offset -= 3600
    assert database.look() == 0.0


def test_process_that_waited_long_for_its_answer_reports_no_jump(database):
    """The database read its clock at some moment of the round trip: which, is not known."""
    assert database.look(trip=100.0) == 0.0
    assert database.look() == 0.0
    database.steady += 50  # between the reading and the answer, this process stood still
    database.offset -= 50
    assert database.look(trip=60.0) == 0.0


def test_standby_keeps_a_jump_that_the_leader_may_have_missed(database):
    database.offset += 3600
    assert database.look(leading=False) == pytest.approx(3600, abs=0.01)
    assert database.look(conf.LEASE_S, leading=True) == pytest.approx(3600, abs=0.01)


def test_jump_that_only_the_standby_notices_is_its_own_pause(database):
    database.offset += 40  # it stood still for 40 s
    database.look(leading=False)
    assert database.look(2 * conf.LEASE_S + 1, leading=False) == 0.0
    assert database.look(leading=True) == 0.0


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_jump_is_noticed_while_each_answer_is_slow(jump):
    database = Database()
    for _ in range(5):
        assert database.look(trip=1.4) == 0.0
    database.offset += jump
    assert database.look(trip=1.4) == pytest.approx(jump, abs=2.8)
    database.handled += database.watch.jump
    for trip in (1.4, 20.0, 0.001, 8.0):
        assert database.look(trip=trip) == 0.0
