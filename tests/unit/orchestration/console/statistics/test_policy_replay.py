"""The replay of recorded attempts under other thresholds: what is known, and what cannot be."""

from dataclasses import replace

from orchestration.console.statistics.policy_replay import (
    RecordedAttempt,
    RecordedStep,
    ReplayedPolicy,
    replay,
)
from orchestration.decisions.recovery import Thresholds


def values(threshold=3, allowed=10.0, timeout=3.0, **more):
    thresholds = Thresholds(
        failure_threshold=threshold, backoff=1, backoff_cap=60, undo_threshold=20, **more
    )
    return ReplayedPolicy(thresholds=thresholds, time_allowed=allowed, call_timeout=timeout)


def tried(outcome="done", seconds=1.0, **more):
    return RecordedAttempt(outcome=outcome, seconds=seconds, **more)


def tally(*attempts, direction="do", **policy):
    return replay([RecordedStep(attempts=attempts, direction=direction)], values(**policy))


def test_step_with_thresholds_of_its_own_is_replayed_by_these():
    attempts = [tried("transient"), tried("transient"), tried()]
    steps = [RecordedStep(attempts=attempts, place=("greet", name)) for name in ("hello", "again")]
    own = replace(values(threshold=1), own={("greet", "again"): values(threshold=9).thresholds})
    assert replay(steps, own).errors == 1


def test_replay_under_the_same_limits_succeeds():
    counts = tally(tried())
    assert (counts.steps, counts.attempts, counts.cut_off, counts.retried, counts.errors) == (
        1,
        1,
        0,
        0,
        0,
    )
    assert counts.open == 0


def test_late_reply_is_cut_off_and_retried():
    counts = tally(tried(seconds=8.0), allowed=5.0)
    assert (counts.cut_off, counts.retried, counts.errors, counts.open) == (1, 1, 0, 1)


def test_call_longer_than_its_timeout_is_cut_off():
    assert tally(tried(seconds=4.2, working=4.0), timeout=3.0).cut_off == 1
    assert tally(tried(seconds=4.2, working=4.0, calls=2), timeout=3.0).cut_off == 0
    assert tally(tried(seconds=8.2, working=8.0, calls=2), timeout=3.0).cut_off == 1
    assert tally(tried(seconds=4.2, working=None, calls=0), timeout=3.0).cut_off == 0


def test_lower_threshold_gives_up_sooner():
    step = [tried("transient"), tried("unknown"), tried("done")]
    as_it_was = tally(*step, threshold=3)
    assert (as_it_was.retried, as_it_was.errors, as_it_was.never_made) == (2, 0, 0)
    lower = tally(*step, threshold=2)
    assert (lower.retried, lower.errors, lower.never_made, lower.attempts) == (1, 1, 1, 2)


def test_higher_threshold_leaves_the_outcome_open():
    step = [tried("unknown")] * 3
    assert tally(*step, threshold=3).errors == 1
    higher = tally(*step, threshold=5)
    assert (higher.errors, higher.retried, higher.open) == (0, 3, 1)


def test_rejection_ignores_thresholds():
    counts = tally(tried("rejected"), threshold=1)
    assert (counts.errors, counts.retried, counts.open) == (0, 0, 0)


def test_resubmission_resets_the_count():
    counts = tally(tried("unknown"), tried("unknown", resubmitted=True), threshold=1)
    assert (counts.errors, counts.never_made, counts.attempts) == (2, 0, 2)


def test_excused_failure_does_not_count():
    counts = tally(tried("transient", excused=True), tried("transient"), tried(), threshold=2)
    assert (counts.errors, counts.retried) == (0, 2)


def test_expired_attempt_might_have_had_more_time():
    assert tally(tried("expired", seconds=10.0), allowed=20.0).longer == 1
    assert tally(tried("expired", seconds=10.0), allowed=10.0).longer == 0
    assert tally(tried("expired", seconds=10.0), allowed=5.0).cut_off == 0


def test_attempts_after_the_threshold_are_replayed():
    step = [tried("unknown"), tried("unknown"), tried("unknown")]
    assert tally(*step, threshold=2, past_threshold="undo").undone == 1
    waits = tally(*step, threshold=2, past_threshold="wait", max_extended_waits=1)
    assert (waits.waits, waits.errors, waits.open) == (1, 0, 1)
    assert tally(*step, threshold=1, direction="undo").errors == 0  # its own threshold is 20
