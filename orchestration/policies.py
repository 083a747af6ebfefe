"""What an admin has set: thresholds of agents, and the interval of sweeps."""

from . import sql
from .models import Policy
from .recovery import Thresholds

SWEPT_WITHIN = 30.0  # seconds: for so long at the least a leader may take to finish a sweep


def patience() -> float:
    """Return the seconds after which a sweep is missed."""
    return max(SWEPT_WITHIN, 10 * interval())


def interval() -> float:
    """Return the seconds between two sweeps, as set now."""
    rows = sql.run("SELECT interval FROM orchestration_supervisorpolicy WHERE id = 1", {})
    return float(rows[0][0])


def thresholds(policy: Policy) -> Thresholds:
    """Return the part of a policy that recovery looks at."""
    return Thresholds(
        failure_threshold=policy.failure_threshold,
        backoff=policy.backoff,
        backoff_cap=policy.backoff_cap,
        undo_threshold=policy.undo_threshold,
        past_threshold=policy.past_threshold,
        extended_wait=policy.extended_wait,
        rounds=policy.rounds,
    )


def agents() -> list[str]:
    """Return the names of all agents."""
    return list(Policy.objects.order_by("agent").values_list("agent", flat=True))
