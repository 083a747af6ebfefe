"""The thresholds that an agent may give first values; admins change them later."""

__all__ = ["PolicyValues", "StepPolicyValues"]

from ..decisions.step_policy import StepPolicyValues


class PolicyValues(StepPolicyValues, total=False):
    """What differs from the defaults; times are in seconds (docs/run/configure.md says what each does).

    >>> class Hotel(HttpAgent):
    ...     name, base_url = "hotel", "https://hotel.example"
    ...     policy: PolicyValues = {"call_timeout": 20.0, "tries": 2, "past_threshold": "undo"}
    """

    time_allowed: float
    call_timeout: float
    tries: int
    backoff: float
    backoff_cap: float
    key_memory: float | None
    window: int
    rate: float | None
    aged_after: float
    breaker_calls: int
    breaker_failures: int
    breaker_share: float
    breaker_pause: float
    breaker_pause_cap: float
    retry_after_cap: float
