"""Read the settings of admins: thresholds of agents, and the interval of sweeps."""

from .database import sql
from .decisions.recovery import Thresholds
from .models import Policy

MIN_SWEEP_TIMEOUT_S = 30.0  # a leader may take at least this long to finish a sweep


def patience() -> float:
    """Return the seconds after which a sweep counts as missed."""
    return max(MIN_SWEEP_TIMEOUT_S, 10 * interval())


def interval() -> float:
    """Return the seconds between two sweeps, as set now."""
    rows = sql.run("SELECT interval FROM orchestration_supervisorpolicy WHERE id = 1", {})
    return float(rows[0][0])


def thresholds(policy: Policy) -> Thresholds:
    """Return the thresholds of a policy that recovery uses."""
    return Thresholds(
        failure_threshold=policy.failure_threshold,
        backoff=policy.backoff,
        backoff_cap=policy.backoff_cap,
        undo_threshold=policy.undo_threshold,
        past_threshold=policy.past_threshold,
        extended_wait=policy.extended_wait,
        max_extended_waits=policy.max_extended_waits,
        retry_after_cap=policy.retry_after_cap,
    )


def agents() -> list[str]:
    """Return the names of all agents."""
    return list(Policy.objects.order_by("agent").values_list("agent", flat=True))
