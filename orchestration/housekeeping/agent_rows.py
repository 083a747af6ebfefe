"""Create the rows that each agent needs: its policy, with the agent's defaults, and its gate."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Exists, OuterRef

from .. import registry
from ..cluster import leader_election
from ..models import Gate, Policy, RollUpMark, SupervisorPolicy


def ensure(*, plan: Sequence[tuple[Any, bool]] = (), **_: Any) -> None:
    """Create missing rows; never change what an admin has set.

    Runs after every forward migration. After a backward one, tables may lack columns of the models.
    """
    if any(backwards for _, backwards in plan):
        return
    ensure_agents()
    SupervisorPolicy.objects.get_or_create(id=1)
    RollUpMark.objects.get_or_create(id=1)
    leader_election.ensure()


def ensure_agents() -> None:
    """Create the rows of new agents: a deploy may bring one without a migration."""
    gates = Gate.objects.filter(agent=OuterRef("agent"))
    known = set(Policy.objects.filter(Exists(gates)).values_list("agent", flat=True))
    for name, agent in sorted(registry.agents.items()):
        if name not in known:
            Policy.objects.get_or_create(agent=name, defaults=agent.policy)
            Gate.objects.get_or_create(agent=name)
