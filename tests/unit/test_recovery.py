import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.gate import free_places
from orchestration.recovery import GiveUp, Retry, Thresholds, decide

LIMITS = Thresholds(failure_threshold=4, backoff=2.0, backoff_cap=5.0)


@pytest.mark.parametrize(
    ("failures_before", "chance", "decision"),
    [
        (0, 0.0, Retry(failure_count=1, wait=1.0)),
        (0, 1.0, Retry(failure_count=1, wait=2.0)),
        (1, 0.5, Retry(failure_count=2, wait=3.0)),
        (2, 1.0, Retry(failure_count=3, wait=5.0)),  # capped
        (3, 0.5, GiveUp(failure_count=4)),
        (9, 0.5, GiveUp(failure_count=10)),  # the threshold was lowered meanwhile
    ],
)
def test_decisions(failures_before, chance, decision):
    assert decide(LIMITS, failures_before, chance) == decision


def test_a_threshold_of_one_never_retries():
    once = Thresholds(failure_threshold=1, backoff=1.0, backoff_cap=1.0)
    assert decide(once, 0, 0.0) == GiveUp(failure_count=1)


@given(
    st.integers(1, 1000),
    st.floats(0.001, 1000),
    st.floats(0, 1e5),
    st.integers(0, 2000),
    st.floats(0, 1, exclude_max=True),
)
def test_a_wait_is_positive_and_within_the_cap(threshold, backoff, more, before, chance):
    limits = Thresholds(failure_threshold=threshold, backoff=backoff, backoff_cap=backoff + more)
    decision = decide(limits, before, chance)
    assert decision.failure_count == before + 1
    if isinstance(decision, Retry):
        assert 0 < decision.wait <= backoff + more
        assert before + 1 < threshold
    else:
        assert before + 1 >= threshold


@pytest.mark.parametrize(("window", "in_flight", "free"), [(10, 0, 10), (10, 10, 0), (5, 9, 0)])
def test_the_window_is_never_exceeded(window, in_flight, free):
    assert free_places(window, in_flight) == free
