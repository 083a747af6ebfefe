"""Every agent's gate and thresholds, and the time: small things that all pages need."""

from datetime import datetime

from .. import sql
from ..models import Gate, Policy
from .outlook import AgentView


def database_now() -> datetime:
    """Return the database's time: what ages and countdowns are measured against."""
    now: datetime = sql.run("SELECT clock_timestamp()", {})[0][0]
    return now


def agents() -> dict[str, AgentView]:
    """Return what is known of each agent, by name."""
    policies = {policy.agent: policy for policy in Policy.objects.all()}
    return {
        gate.agent: AgentView(
            open=gate.open,
            reason=gate.reason,
            window=policies[gate.agent].window,
            failure_threshold=policies[gate.agent].failure_threshold,
        )
        for gate in Gate.objects.order_by("agent")
        if gate.agent in policies
    }
