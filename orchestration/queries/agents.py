"""Every agent's gate and thresholds, and the time: small things that all pages need."""

from datetime import datetime

from .. import sql
from ..models import Gate, Hold, Policy
from ..models.hold import Cause, Scope
from ..states import GateState
from .outlook import AgentView


def database_now() -> datetime:
    """Return the database's time: what ages and countdowns are measured against."""
    now: datetime = sql.run("SELECT clock_timestamp()", {})[0][0]
    return now


def agents() -> dict[str, AgentView]:
    """Return what is known of each agent, by name."""
    policies = {policy.agent: policy for policy in Policy.objects.all()}
    holds = Hold.objects.filter(until=None, scope__in=(Scope.ALL, Scope.AGENT))
    held = {hold.agent: hold for hold in holds.exclude(cause=Cause.BREAKER).order_by("-cause")}
    now = database_now()
    return {
        gate.agent: AgentView(
            reason=_shut_because(gate, held.get("") or held.get(gate.agent), now),
            window=policies[gate.agent].window,
            failure_threshold=policies[gate.agent].failure_threshold,
        )
        for gate in Gate.objects.order_by("agent")
        if gate.agent in policies
    }


def _shut_because(gate: Gate, hold: Hold | None, now: datetime) -> str:
    """Return why steps wait at a gate, or nothing while it is open."""
    if hold is not None:
        return f"held by {hold.actor}: {hold.reason}"
    if gate.paused_until is not None and gate.paused_until > now:
        return "the service asked to be left alone for a while"
    match gate.state:
        case GateState.SHUT | GateState.PROBING:
            return "too many of its last calls failed; a probe finds out when it is back"
        case GateState.RAMPING:
            return f"it answers again; {gate.allowance} requests at a time, soon more"
    return ""
