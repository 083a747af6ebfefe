"""The database's clock, reckoned by a clock that no one sets; and whether it jumped."""

import pytest

from orchestration import clock, conf
from orchestration.clock_watch import ClockWatch, Reading
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


def test_a_process_that_never_measured_has_its_own_time(times):
    assert clock.now() == NOON


def test_the_time_goes_on_from_the_last_measurement(times):
    clock.measure(lambda: NOON + 5)
    times.pass_(60)
    assert clock.now() == NOON + 65
    assert clock.lead() == 5


@pytest.mark.parametrize("jump", [300.0, -300.0])
def test_the_time_of_day_of_a_worker_may_be_set_without_effect(times, jump):
    clock.measure(lambda: NOON)
    times.wall += jump
    assert clock.now() == NOON
    assert clock.lead() == -jump  # which people see
    made = time_ordered_id().int >> 80
    assert made == NOON * 1000


def test_half_the_round_trip_is_the_way_there(times):
    def ask():
        times.pass_(0.1)
        return NOON + 0.05

    clock.measure(ask)
    assert clock.now() == pytest.approx(NOON + 0.1)


def test_a_slow_answer_changes_nothing_unless_it_is_the_first(times):
    def slow():
        times.pass_(10)
        return NOON + 19

    clock.measure(slow)
    assert clock.now() == NOON + 24
    clock.measure(lambda: NOON + 10)
    clock.measure(slow)
    assert clock.now() == NOON + 20


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_slow_answer_is_followed_when_it_proves_the_clock_wrong(times, jump):
    clock.measure(lambda: NOON)

    def slow():
        times.pass_(0.25)
        return NOON + jump

    clock.measure(slow)
    assert clock.now() == pytest.approx(NOON + jump, abs=0.25)


def test_the_steady_clock_goes_forward():
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


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 31.0, -31.0])
def test_a_jump_is_noticed_until_it_was_dealt_with(database, jump):
    database.offset += jump
    assert database.look() == pytest.approx(jump, abs=0.01)
    assert database.look() == pytest.approx(jump, abs=0.01)
    assert database.watch.since == pytest.approx(2, abs=0.01)
    database.handled += database.watch.jump
    assert database.look() == 0.0


def test_small_deviations_add_up_to_nothing(database):
    for _ in range(1000):
        database.offset += conf.CLOCK_JUMP / 2
        assert database.look() == 0.0


def test_there_and_back_before_a_look_is_none(database):
    database.offset += 3600
    database.offset -= 3600
    assert database.look() == 0.0


def test_one_that_waited_long_for_its_answer_accuses_no_one(database):
    """The database read its clock at some moment of the round trip: which, is not known."""
    assert database.look(trip=100.0) == 0.0
    assert database.look() == 0.0
    database.steady += 50  # between the reading and the answer, this process stood still
    database.offset -= 50
    assert database.look(trip=60.0) == 0.0


def test_a_standby_keeps_what_the_leader_may_not_have_dealt_with(database):
    database.offset += 3600
    assert database.look(leading=False) == pytest.approx(3600, abs=0.01)
    assert database.look(conf.LEASE, leading=True) == pytest.approx(3600, abs=0.01)


def test_what_the_leader_does_not_notice_is_the_standbys_own_pause(database):
    database.offset += 40  # it stood still for 40 s
    database.look(leading=False)
    assert database.look(2 * conf.LEASE + 1, leading=False) == 0.0
    assert database.look(leading=True) == 0.0


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_jump_is_noticed_while_each_answer_is_slow(jump):
    database = Database()
    for _ in range(5):
        assert database.look(trip=1.4) == 0.0
    database.offset += jump
    assert database.look(trip=1.4) == pytest.approx(jump, abs=2.8)
    database.handled += database.watch.jump
    for trip in (1.4, 20.0, 0.001, 8.0):
        assert database.look(trip=trip) == 0.0
