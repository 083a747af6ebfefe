"""Every agent's gate and thresholds, and the time: small things that all pages need."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from .. import policies
from ..database import sql
from ..decisions.wait_reasons import MOST_AHEAD, AgentFacts, why_agent
from ..models import Gate, Hold, Policy, Step
from ..models.hold import HoldCause, Scope
from ..models.step import claimable
from ..states import StepState
from .agent_view import AgentView
from .next_step import Queued, held_because

CAP = 1_000  # counts go no further: "1,000+" says enough, and costs the same at any size

# Of each step: what is in flight at its agent (step_in_flight), how many of a higher priority wait, and
# how many of its key are before it (both by step_line), counted to the limit.
QUEUED = f"""
SELECT s.id, flying.steps, (SELECT count(*) FROM (SELECT FROM orchestration_step o
        WHERE o.agent = s.agent AND o.priority > s.priority AND NOT o.isolated
        AND {claimable("o")}
        LIMIT %(limit)s) AS urgent), (SELECT count(*) FROM (SELECT FROM orchestration_step o
        WHERE o.agent = s.agent AND o.priority = s.priority AND o.fairness_key = s.fairness_key
        AND {claimable("o")}
        AND o.turn < s.turn LIMIT %(limit)s) AS before)
FROM (SELECT DISTINCT agent FROM orchestration_step WHERE id = ANY(%(ids)s)) AS a
CROSS JOIN LATERAL (SELECT count(*) AS steps FROM orchestration_step o WHERE o.agent = a.agent
    AND o.process_state = 'processing' AND o.locked_by IS NOT NULL) AS flying
JOIN orchestration_step s ON s.agent = a.agent AND s.id = ANY(%(ids)s)
"""  # noqa: S608 - put together from constants


def agents(now: datetime) -> dict[str, AgentView]:
    """Return what is known of each agent at a time, by name: in four queries."""
    known, own = {policy.agent: policy for policy in Policy.objects.all()}, policies.own_of_steps()
    held = agent_holds()
    return {
        gate.agent: agent_view(
            gate, known[gate.agent], held.get("") or held.get(gate.agent), now, own
        )
        for gate in Gate.objects.order_by("agent")
        if gate.agent in known
    }


def agent_holds() -> dict[str, Hold]:
    """Return the holds in force on agents, by name; one on everything has none."""
    holds = Hold.objects.filter(until=None, scope__in=(Scope.ALL, Scope.AGENT))
    # by hand goes before "no worker": that is who must be asked first
    return {hold.agent: hold for hold in holds.exclude(cause=HoldCause.BREAKER).order_by("-cause")}


def agent_view(
    gate: Gate,
    policy: Policy,
    hold: Hold | None,
    now: datetime,
    own: Mapping[tuple[str, str], Mapping[str, Any]] = policies.NOTHING,
) -> AgentView:
    """Return an agent's gate as other pages need it.

    `hold` is the one in force, if any; `own` are the values that steps have for themselves.
    """
    facts = AgentFacts(
        window=policy.window,
        state=gate.state,
        hold=held_because(hold) if hold else "",
        unserved=hold is not None and hold.cause == HoldCause.NO_WORKER,
        paused_until=gate.paused_until,
        probe_at=gate.probe_at,
        allowance=gate.allowance,
        rate_at=_rate_at(gate, policy.rate),
    )
    return AgentView(
        facts=facts,
        blocked=why_agent(facts, now),
        thresholds=policies.thresholds(policy),
        own=own,
        hold=hold,
    )


def _rate_at(gate: Gate, rate: float | None) -> datetime | None:
    """Return when a whole token is there, by the last count of them (`gate.py`)."""
    if rate is None or gate.tokens_at is None:
        return None
    return gate.tokens_at + timedelta(seconds=max(0.0, 1 - gate.tokens) / rate)


def queued(steps: Iterable[Step]) -> dict[int, Queued]:
    """Return where those of `steps` stand that may be claimed: one query, none if there are none."""
    ids = [
        step.id
        for step in steps
        if step.process_state == StepState.PENDING and not (step.run_after or step.held_by_id)
    ]
    if not ids:
        return {}
    rows = sql.run(QUEUED, {"ids": ids, "limit": MOST_AHEAD + 1})
    return {
        step: Queued(in_flight=flying, urgent=urgent, ahead=ahead)
        for step, flying, urgent, ahead in rows
    }
