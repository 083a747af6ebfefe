"""The replay of recorded attempts under other thresholds: what is known, and what cannot be."""

from orchestration.recovery import Thresholds
from orchestration.whatif import Story, Tried, Values, replay


def values(threshold=3, allowed=10.0, timeout=3.0, **more):
    thresholds = Thresholds(
        failure_threshold=threshold, backoff=1, backoff_cap=60, undo_threshold=20, **more
    )
    return Values(thresholds=thresholds, time_allowed=allowed, call_timeout=timeout)


def tried(outcome="done", seconds=1.0, **more):
    return Tried(outcome=outcome, seconds=seconds, **more)


def tally(*attempts, direction="do", **policy):
    return replay([Story(attempts=attempts, direction=direction)], values(**policy))


def test_what_just_works_goes_on_working():
    found = tally(tried())
    assert (found.steps, found.attempts, found.cut_off, found.retried, found.errors) == (
        1,
        1,
        0,
        0,
        0,
    )
    assert found.open == 0


def test_a_reply_later_than_allowed_is_cut_off_and_retried():
    found = tally(tried(seconds=8.0), allowed=5.0)
    assert (found.cut_off, found.retried, found.errors, found.open) == (1, 1, 0, 1)


def test_a_call_longer_than_its_timeout_is_cut_off():
    assert tally(tried(seconds=4.2, working=4.0), timeout=3.0).cut_off == 1
    assert tally(tried(seconds=4.2, working=4.0, calls=2), timeout=3.0).cut_off == 0
    assert tally(tried(seconds=8.2, working=8.0, calls=2), timeout=3.0).cut_off == 1
    assert tally(tried(seconds=4.2, working=None, calls=0), timeout=3.0).cut_off == 0


def test_a_lower_threshold_gives_up_sooner_and_never_makes_the_rest():
    story = [tried("transient"), tried("unknown"), tried("done")]
    as_it_was = tally(*story, threshold=3)
    assert (as_it_was.retried, as_it_was.errors, as_it_was.never_made) == (2, 0, 0)
    lower = tally(*story, threshold=2)
    assert (lower.retried, lower.errors, lower.never_made, lower.attempts) == (1, 1, 1, 2)


def test_a_higher_threshold_leaves_open_how_it_would_have_ended():
    story = [tried("unknown")] * 3
    assert tally(*story, threshold=3).errors == 1
    higher = tally(*story, threshold=5)
    assert (higher.errors, higher.retried, higher.open) == (0, 3, 1)


def test_a_rejection_is_no_matter_of_thresholds():
    found = tally(tried("rejected"), threshold=1)
    assert (found.errors, found.retried, found.open) == (0, 0, 0)


def test_a_resubmission_begins_afresh():
    found = tally(tried("unknown"), tried("unknown", afresh=True), threshold=1)
    assert (found.errors, found.never_made, found.attempts) == (2, 0, 2)


def test_an_excused_failure_does_not_count():
    found = tally(tried("transient", excused=True), tried("transient"), tried(), threshold=2)
    assert (found.errors, found.retried) == (0, 2)


def test_an_expired_attempt_might_have_had_more_time():
    assert tally(tried("expired", seconds=10.0), allowed=20.0).longer == 1
    assert tally(tried("expired", seconds=10.0), allowed=10.0).longer == 0
    assert tally(tried("expired", seconds=10.0), allowed=5.0).cut_off == 0


def test_what_follows_the_threshold_is_replayed_too():
    story = [tried("unknown"), tried("unknown"), tried("unknown")]
    assert tally(*story, threshold=2, past_threshold="undo").undone == 1
    waits = tally(*story, threshold=2, past_threshold="wait", rounds=1)
    assert (waits.waits, waits.errors, waits.open) == (1, 0, 1)
    assert tally(*story, threshold=1, direction="undo").errors == 0  # its own threshold is 20
