"""What becomes of due times: overlap, catch-up, clocks that go back, and the next look."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestration.decisions import schedule
from orchestration.decisions.due_times import Timing
from orchestration.decisions.schedule import CatchUp, Overlap, Plan, Position, begin, decide

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def hourly(**options):
    timing = Timing(cron="0 * * * *", jitter=options.pop("jitter", 0.0))
    return Plan(name="hourly", timing=timing, **options)


def at(hour, minute=0):
    return NOON.replace(hour=hour, minute=minute)


def look(plan, now, *, due=NOON, waiting=None, going=False):
    return decide(plan, Position(due=due, waiting=waiting), now, going=going)


def test_new_schedule_begins_at_its_first_due_time_to_come():
    verdict = begin(hourly(), at(12, 1))
    assert (verdict.position.due, verdict.look_at) == (at(13), at(13))
    assert not verdict.submitted


def test_due_time_is_submitted_and_the_next_one_is_looked_at_in_time():
    verdict = look(hourly(), NOON)
    assert verdict.submitted == [NOON]
    assert (verdict.position.due, verdict.look_at) == (at(13), at(13))


@pytest.mark.parametrize(
    ("catch_up", "submitted", "missed"),
    [(CatchUp.NONE, [], 4), (CatchUp.LAST, [at(15)], 3), (CatchUp.ALL, [at(12), at(13), at(14), at(15)], 0)],
)  # fmt: skip
def test_after_an_outage_catch_up_decides(catch_up, submitted, missed):
    plan = hourly(catch_up=catch_up, overlap=Overlap.ALLOW)
    verdict = look(plan, at(15, 30))
    assert (verdict.submitted, verdict.missed) == (submitted, missed)
    assert verdict.position.due == at(16)


def test_short_delay_is_not_an_outage():
    verdict = look(hourly(catch_up=CatchUp.NONE), NOON + timedelta(seconds=59))
    assert verdict.submitted == [NOON]


def test_what_is_beyond_the_span_is_missed():
    plan = hourly(catch_up=CatchUp.ALL, overlap=Overlap.ALLOW, within=2 * HOUR)
    verdict = look(plan, at(15, 30))
    assert (verdict.submitted, verdict.missed) == ([at(14), at(15)], 2)


def test_catch_up_of_all_is_not_a_burst():
    timing = Timing(cron="* * * * *")
    plan = Plan(name="m", timing=timing, catch_up=CatchUp.ALL, overlap=Overlap.ALLOW)
    now, position, submitted = NOON + 3 * HOUR, Position(due=NOON), []
    while position.due <= now:
        verdict = decide(plan, position, now, going=False)
        assert len(verdict.submitted) <= schedule.AT_ONCE
        if verdict.position.due <= now:
            assert verdict.look_at > now  # others have their turn
        submitted += verdict.submitted
        position = verdict.position
    assert submitted == [NOON + n * MINUTE for n in range(181)]


@pytest.mark.parametrize("days", [1, 31, 5000])
def test_one_look_reads_few_due_times_however_long_the_outage_was(days):
    timing = Timing(cron="* * * * *")
    plan = Plan(name="m", timing=timing, within=timedelta(days=min(days, 31)))
    now, position, looks, submitted = NOON + timedelta(days=days), Position(due=NOON), 0, []
    while position.due <= now:
        verdict = decide(plan, position, now, going=False)
        assert verdict.missed <= 2 * schedule.MOST_READ
        submitted += verdict.submitted
        position, looks = verdict.position, looks + 1
    assert submitted == [now]
    assert looks <= 31 * 24 * 60 / (schedule.MOST_READ - 1) + 2


def test_skipped_while_the_last_task_has_not_ended():
    verdict = look(hourly(), NOON, going=True)
    assert (verdict.submitted, verdict.skipped) == ([], [NOON])
    assert verdict.look_at == at(13)


def test_one_waits_for_the_end_of_the_last_task_and_more_are_skipped():
    plan = hourly(overlap=Overlap.QUEUE)
    first = look(plan, NOON, going=True)
    assert (first.submitted, first.skipped) == ([], [])
    assert first.position == Position(due=at(13), waiting=NOON)
    assert first.look_at == NOON + timedelta(seconds=1)
    second = decide(plan, first.position, at(13), going=True)
    assert second.skipped == [at(13)]
    assert second.position == Position(due=at(14), waiting=NOON)
    third = decide(plan, second.position, at(13, 20), going=False)
    assert third.submitted == [NOON]
    assert third.position == Position(due=at(14), waiting=None)
    assert third.look_at == at(14)


def test_all_that_was_missed_runs_one_after_the_other_if_they_are_queued():
    plan = hourly(overlap=Overlap.QUEUE, catch_up=CatchUp.ALL)
    position, submitted = Position(due=NOON), []
    for going in (False, True, False, True, False, False):
        verdict = decide(plan, position, at(15, 30), going=going)
        assert len(verdict.submitted) <= 1
        assert not verdict.skipped
        assert verdict.missed == 0
        submitted += verdict.submitted
        position = verdict.position
    assert submitted == [at(12), at(13), at(14), at(15)]
    assert position == Position(due=at(16), waiting=None)


def test_waiting_is_looked_at_less_often_the_longer_it_waits():
    plan = hourly(overlap=Overlap.QUEUE)
    waited = NOON + timedelta(seconds=30)
    soon = decide(plan, Position(due=at(14), waiting=NOON), waited, going=True).look_at
    later = decide(plan, Position(due=at(20), waiting=NOON), at(18), going=True).look_at
    assert soon == waited + timedelta(seconds=3)
    assert later == at(18) + timedelta(seconds=5)


def test_jitter_delays_the_run_and_not_its_due_time():
    plan = hourly(jitter=1800.0)
    delay = plan.starts(NOON) - NOON
    assert timedelta(0) < delay < timedelta(minutes=30)
    early = look(plan, NOON + delay / 2)
    assert (early.submitted, early.position.due, early.look_at) == ([], NOON, NOON + delay)
    assert look(plan, NOON + delay).submitted == [NOON]


def test_clock_that_went_back_has_the_schedule_planned_anew():
    verdict = look(hourly(), at(9, 30), due=at(20))
    assert verdict.submitted == []
    assert (verdict.position.due, verdict.look_at) == (at(10), at(10))


def test_every_second_has_one_run_for_each_second_that_is_looked_at():
    plan = Plan(name="s", timing=Timing(every=1, start_at=NOON), overlap=Overlap.ALLOW)
    verdict = look(plan, NOON + timedelta(seconds=2))
    assert verdict.submitted == [NOON + timedelta(seconds=2)]
    assert verdict.missed == 2
