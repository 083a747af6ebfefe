"""Running stacks whose faults meet orders in flight."""

from drill.stack import Stack


def prepare(running: Stack) -> None:
    """Set short time-outs and narrow windows: faults meet orders in flight, and are detected soon."""
    running.policy(
        time_allowed=3, call_timeout=1.5, tries=2, failure_threshold=20, backoff=0.3,
        backoff_cap=1, window=12,
    )  # fmt: skip
    running.sandbox("/faults", {"latency": {"*": 0.1}}, "PUT")
    # more stock than all the tests sell
    stock = dict.fromkeys(running.sandbox("/inventory/stock"), 1000000)
    running.sandbox("/inventory/stock", stock, "PUT")
