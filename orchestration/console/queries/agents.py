"""The agents' page: gates, requests in flight, waiting steps, call durations and holds."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ... import registry
from ...alerting.alerts import WEBHOOK
from ...database import clock, sql
from ...database.capped_counts import CAP
from ...decisions.gate import Limits, Slot, share_failed
from ...models import Gate, Hold, Policy, StepRollUp
from ...models.request import UNKNOWN_ID
from ...models.rollup import Span
from ...models.step import claimable
from ...waiting.agent_facts import agent_holds, agent_view
from ...waiting.agent_view import AgentView
from ...waiting.holds import ended_holds, holds_in_force
from ..statistics.histogram import Buckets, merged, percentile

LATELY = timedelta(hours=1)  # the times are those of the attempts done since then

# One partial index serves each column; what waits is counted up to the cap. A retry whose time has
# not come waits for that, and not for the agent.
LOAD = f"""
SELECT g.agent,
    (SELECT count(*) FROM orchestration_step s WHERE s.agent = g.agent
        AND s.process_state = 'processing' AND s.locked_by IS NOT NULL),
    (SELECT count(*) FROM (SELECT 1 FROM orchestration_step s WHERE s.agent = g.agent AND {claimable("s")}
        ORDER BY s.agent, s.isolated, s.priority DESC, s.turn, s.id LIMIT %(limit)s) AS counted),
    (SELECT min(s.pending_since) FROM orchestration_step s WHERE s.agent = g.agent
        AND s.process_state = 'pending' AND num_nonnulls(s.run_after, s.held_by_id) = 0),
    (SELECT count(*) FROM orchestration_worker w WHERE w.queue = g.agent
        AND w.seen_at > (SELECT clock_timestamp()) - %(alive)s * interval '1 second')
FROM unnest(%(agents)s::text[]) AS g (agent)
"""  # noqa: S608 - put together from constants

# The last of what services reported by webhooks in a day, along request_reported; the alert counts what was
# refused.
WEBHOOKS = f"""
SELECT g.agent, max(r.created_at), count(r.created_at), count(*) FILTER (WHERE r.refusal = '{UNKNOWN_ID}'),
    (SELECT count FROM orchestration_alert
        WHERE fingerprint = '{WEBHOOK}' || g.agent || '/refused' AND closed_at IS NULL)
FROM unnest(%(agents)s::text[]) AS g (agent) LEFT JOIN LATERAL (
    SELECT created_at, refusal FROM orchestration_taskrequest
    WHERE agent = g.agent AND agent <> '' AND created_at > %(now)s::timestamptz - interval '1 day'
    ORDER BY created_at DESC LIMIT %(limit)s) AS r ON true
GROUP BY g.agent
"""  # noqa: S608 - constants


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """What a service reported by webhooks in the last day: how often, no further than the cap, and when last.

    For those that are `unknown` no step was found; `refused` are the webhooks of the alert that is open.
    """

    last: datetime | None
    received: int
    unknown: int
    refused: int | None


@dataclass(frozen=True, kw_only=True)
class Load:
    """What an agent has and what waits for it; `workers` serve its queue."""

    in_flight: int = 0
    waiting: int = 0
    waiting_since: datetime | None = None
    workers: int = 0


@dataclass(frozen=True, kw_only=True)
class Times:
    """How long attempts of an agent took lately, in seconds; None where none was done."""

    median: float | None = None
    p95: float | None = None


@dataclass(frozen=True, kw_only=True)
class AgentRow:
    """One agent; `hold` keeps all its steps; `failed` of the `seen` attempts did, for its breaker."""

    gate: Gate
    policy: Policy
    view: AgentView
    load: Load
    times: Times
    hold: Hold | None
    failed: int
    seen: int
    webhooks: Webhooks | None = None  # of an agent that takes them

    @property
    def name(self) -> str:
        """Return the agent's name."""
        return self.gate.agent

    @property
    def may_probe(self) -> bool:
        """Return whether a request would go sooner if one asked for it: a probe, or after a pause."""
        return bool(self.view.blocked and self.view.blocked.at)

    @property
    def opens_at(self) -> int:
        """Return with how many failures the breaker opens, given as many attempts as it looks at."""
        share = math.ceil(self.policy.breaker_share * self.seen)
        return max(self.policy.breaker_failures, share)


@dataclass(frozen=True, kw_only=True)
class AgentsPage:
    """All that the agents' page shows; `everything` is the hold on all of it."""

    now: datetime
    rows: Sequence[AgentRow]
    everything: Hold | None
    holds: Sequence[Hold]
    lately: Sequence[Hold]
    steps: Sequence[tuple[str, str]] = field(default_factory=list)


def agents_page(alive: float) -> AgentsPage:
    """Return the page in nine queries; `alive` is how long ago a living worker was seen, at most."""
    now = clock.database_now()
    policies = {policy.agent: policy for policy in Policy.objects.all()}
    gates = [gate for gate in Gate.objects.order_by("agent") if gate.agent in policies]
    held = agent_holds()
    names = [gate.agent for gate in gates]
    loads = _loads(names, alive)
    times = _times(now)
    reported = _webhooks(now)
    rows = []
    for gate in gates:
        hold = held.get("") or held.get(gate.agent)
        policy = policies[gate.agent]
        slots = [Slot(*slot) for slot in gate.slots]
        failed, seen = share_failed(slots, _limits(policy), now.timestamp())
        rows.append(
            AgentRow(
                gate=gate,
                policy=policy,
                view=agent_view(gate, policy, hold, now),
                load=loads.get(gate.agent, Load()),
                times=times.get(gate.agent, Times()),
                hold=hold,
                failed=failed,
                seen=seen,
                webhooks=reported.get(gate.agent),
            )
        )
    return AgentsPage(
        now=now,
        rows=rows,
        everything=held.get(""),
        holds=holds_in_force(),
        lately=ended_holds(),
        steps=[
            (workflow.name, step.name)
            for workflow in registry.workflows.values()
            for step in workflow.steps
        ],
    )


def _webhooks(now: datetime) -> Mapping[str, Webhooks]:
    """Return what services reported by webhooks, by the agents that take them; no query without any."""
    names = [name for name, agent in registry.agents.items() if agent.can_receive()]
    if not names:
        return {}
    rows = sql.run(WEBHOOKS, {"agents": names, "now": now, "limit": CAP + 1})
    columns = ("last", "received", "unknown", "refused")
    return {name: Webhooks(**_named(columns, row)) for name, *row in rows}


def agent_row(name: str) -> tuple[Gate, int] | None:
    """Return an agent's gate and how many steps wait at it (capped), or None if there is none."""
    gate = Gate.objects.filter(agent=name).first()
    if gate is None:
        return None
    return gate, _loads([name], 0)[name].waiting


def _limits(policy: Policy) -> Limits:
    return Limits(
        window=policy.window,
        rate=policy.rate,
        time_allowed=policy.time_allowed,
        calls=policy.breaker_calls,
        failures=policy.breaker_failures,
        share=policy.breaker_share,
        pause=policy.breaker_pause,
        pause_cap=policy.breaker_pause_cap,
        retry_after_cap=policy.retry_after_cap,
    )


def _loads(names: Sequence[str], alive: float) -> Mapping[str, Load]:
    rows = sql.run(LOAD, {"agents": list(names), "limit": CAP + 1, "alive": alive})
    columns = ("in_flight", "waiting", "waiting_since", "workers")
    return {name: Load(**_named(columns, row)) for name, *row in rows}


def _times(now: datetime) -> Mapping[str, Times]:
    """Add up the roll-ups of the last hour: at most one a minute and step, along their own index."""
    rows = StepRollUp.objects.filter(span=Span.MINUTE, start__gte=now - LATELY)
    took: dict[str, list[Buckets]] = defaultdict(list)
    for agent, buckets in rows.values_list("agent", "took"):
        took[agent].append(buckets)
    merged_by_agent = {agent: merged(parts) for agent, parts in took.items()}
    return {
        agent: Times(median=percentile(buckets, 0.5), p95=percentile(buckets, 0.95))
        for agent, buckets in merged_by_agent.items()
    }


def _named(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(columns, row, strict=True))
