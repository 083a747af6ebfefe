"""The rows that every agent needs: its policy and its gate, with the agent's own defaults."""

from typing import Any

from django.db.models import Exists, OuterRef

from . import leader, registry, sql
from .models import Gate, Policy, RollUpMark, SupervisorPolicy
from .recovery import Thresholds


def ensure(**_: Any) -> None:
    """Make what is missing; never change what an admin has set."""
    ensure_agents()
    SupervisorPolicy.objects.get_or_create(id=1)
    RollUpMark.objects.get_or_create(id=1)
    leader.ensure()


def ensure_agents() -> None:
    """Make the rows of agents that have none: a deploy may bring one without a migration."""
    gates = Gate.objects.filter(agent=OuterRef("agent"))
    known = set(Policy.objects.filter(Exists(gates)).values_list("agent", flat=True))
    for name, agent in sorted(registry.agents.items()):
        if name not in known:
            Policy.objects.get_or_create(agent=name, defaults=agent.policy)
            Gate.objects.get_or_create(agent=name)


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
