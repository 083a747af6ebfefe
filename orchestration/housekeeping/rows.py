"""The rows that every agent needs: its policy and its gate, with the agent's own defaults."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Exists, OuterRef

from .. import leader, registry
from ..models import Gate, Policy, RollUpMark, SupervisorPolicy


def ensure(*, plan: Sequence[tuple[Any, bool]] = (), **_: Any) -> None:
    """Make what is missing; never change what an admin has set.

    Called after every migration; not after one back, whose tables may lack columns that we know.
    """
    if any(backwards for _, backwards in plan):
        return
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
