"""Every agent's gate and thresholds, and the time: small things that all pages need."""

from datetime import datetime

from .. import sql
from ..models import Gate, Hold, Policy
from ..models.hold import Cause, Scope
from ..states import GateState
from .outlook import AgentView, held_because

CAP = 1_000  # counts go no further: "1,000+" says enough, and costs the same at any size


def database_now() -> datetime:
    """Return the database's time: what ages and countdowns are measured against."""
    now: datetime = sql.run("SELECT clock_timestamp()", {})[0][0]
    return now


def agents() -> dict[str, AgentView]:
    """Return what is known of each agent, by name: in four queries."""
    policies = {policy.agent: policy for policy in Policy.objects.all()}
    held = agent_holds()
    now = database_now()
    return {
        gate.agent: agent_view(
            gate, policies[gate.agent], held.get("") or held.get(gate.agent), now
        )
        for gate in Gate.objects.order_by("agent")
        if gate.agent in policies
    }


def agent_holds() -> dict[str, Hold]:
    """Return the holds in force on agents, by name; one on everything has none."""
    holds = Hold.objects.filter(until=None, scope__in=(Scope.ALL, Scope.AGENT))
    # by hand goes before "no worker": that is who must be asked first
    return {hold.agent: hold for hold in holds.exclude(cause=Cause.BREAKER).order_by("-cause")}


def agent_view(gate: Gate, policy: Policy, hold: Hold | None, now: datetime) -> AgentView:
    """Return an agent's gate as other pages need it; `hold` is the one in force, if any."""
    reason, then, at = _kept_because(gate, hold, now)
    return AgentView(
        reason=reason,
        window=policy.window,
        failure_threshold=policy.failure_threshold,
        undo_threshold=policy.undo_threshold,
        rounds=policy.rounds,
        state=gate.state,
        held=hold is not None,
        at=at,
        then=then,
    )


def _kept_because(gate: Gate, hold: Hold | None, now: datetime) -> tuple[str, str, datetime | None]:
    """Return why steps wait at a gate, what happens next by itself, and when."""
    if hold is not None:
        return held_because(hold), "", None
    if gate.paused_until is not None and gate.paused_until > now:
        return "the service asked to be left alone for a while", "asked again", gate.paused_until
    match gate.state:
        case GateState.OPEN:
            return "too many of its calls failed", "probe", gate.probe_at
        case GateState.HALF_OPEN:
            return "too many of its calls failed; a probe is out", "", None
        case GateState.RECOVERING:
            return f"it answers again; {gate.allowance} requests at a time, soon more", "", None
    return "", "", None
