"""The gates' rows: locked by whoever dispatches, moved by what attempts came to (P16, P28)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from .. import alerts, sql
from ..gate import GateView, Heard, Limits, hear, unasked
from ..models import Event, Gate, Hold
from ..models.alert import Severity
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..models.hold import Cause, Scope
from ..progression import Refusal
from ..states import GateState

# With every turn of a scheduler, so it is plain SQL: building queries took longer than running them.
LOCK = """
SELECT g.agent, g.state, g.recent, extract(epoch FROM g.heard_at)::float8,
    extract(epoch FROM g.probe_at)::float8, g.trips, g.allowance, g.successes,
    extract(epoch FROM g.paused_until)::float8, g.tokens, extract(epoch FROM g.tokens_at)::float8,
    p."window", p.rate, p.breaker_calls, p.breaker_failures, p.breaker_share, p.breaker_pause,
    p.breaker_pause_cap
FROM orchestration_gate g JOIN orchestration_policy p ON p.agent = g.agent
WHERE g.agent = ANY(%(agents)s)
ORDER BY g.agent FOR NO KEY UPDATE OF g
"""
VIEW = len(fields(GateView))  # columns; those after them are the limits

# The first of an agent's steps that may be claimed, NULL if there is none. In this order only
# step_claimable is worth using: an EXISTS may choose to read the whole table up to the first.
FIRST = """(SELECT id FROM orchestration_step
    WHERE agent = {agent} {alone} AND process_state = 'pending' AND run_after IS NULL
        AND held_by_id IS NULL
    ORDER BY agent, alone, priority DESC, id LIMIT 1)"""

# Gates that ramp up although nothing waits that may go, or soon will be: along step_claimable,
# step_retry and step_in_flight.
UNASKED = f"""
SELECT g.agent FROM orchestration_gate g WHERE g.state = 'ramping'
  AND {FIRST.format(agent="g.agent", alone="")} IS NULL
  AND (SELECT id FROM orchestration_step s WHERE s.agent = g.agent AND s.process_state = 'pending'
    AND s.run_after < (SELECT clock_timestamp()) + interval '60 seconds'
    ORDER BY s.run_after LIMIT 1) IS NULL
  AND NOT EXISTS (SELECT 1 FROM orchestration_step s WHERE s.agent = g.agent
    AND s.process_state = 'processing' AND s.locked_by IS NOT NULL)
"""  # noqa: S608 - put together from constants

TIMES = ("heard_at", "probe_at", "paused_until", "tokens_at")
BY = "gate"  # who shuts and opens a gate by itself


@dataclass(kw_only=True, slots=True)
class LockedGate:
    """A gate whose row is locked, and the limits of its agent."""

    agent: str
    view: GateView
    limits: Limits


def lock_gates(agents: Collection[str]) -> dict[str, LockedGate]:
    """Lock the gates of `agents`, in the order of their names."""
    return {
        agent: LockedGate(
            agent=agent,
            view=sql.record(GateView, row[:VIEW]),
            limits=sql.record(Limits, row[VIEW:]),
        )
        for agent, *row in sql.run(LOCK, {"agents": sorted(agents)})
    }


def hear_all(
    gates: Mapping[str, LockedGate], heard: Mapping[str, Sequence[Heard]], now: float
) -> None:
    """Move locked gates by what attempts of their agents came to, and write them where that counts."""
    for agent, outcomes in sorted(heard.items()):
        if gate := gates.get(agent):
            move(gate, hear(gate.view, gate.limits, outcomes, now))


def move(gate: LockedGate, to: GateView) -> None:
    """Write a locked gate's new state; open or close the one hold and alert of an outage."""
    before = gate.view
    # a gate that hears only good news says nothing new: spare the row
    if replace(to, heard_at=None) == replace(before, heard_at=None) and "-" not in to.recent:
        return
    gate.view = to
    values: dict[str, Any] = {name: getattr(to, name) for name in GateView.__dataclass_fields__}
    for name in TIMES:
        values[name] = datetime.fromtimestamp(values[name], UTC) if values[name] else None
    Gate.objects.filter(agent=gate.agent).update(**values)
    if before.state == GateState.OPEN and to.state != GateState.OPEN:
        _outage_begins(gate.agent)
    elif before.state != GateState.OPEN and to.state == GateState.OPEN:
        _outage_ends(gate.agent)


@transaction.atomic
def open_unasked() -> int:
    """Open the gates that were ramping up until their backlog was gone; return how many.

    Otherwise the ramp would wait for traffic that may never come, and its alert would stay.
    """
    gates = lock_gates([agent for (agent,) in sql.run(UNASKED, {})])
    for gate in gates.values():
        move(gate, unasked(gate.view))
    return len(gates)


@transaction.atomic
def probe_now(agent: str, *, actor: str, reason: str) -> Refusal | None:
    """Make the next probe of a shut gate due at once; return why not, or None when it was done.

    The next claim sends it: exactly one request, as ever, even where the service asked to be left
    alone for longer.
    """
    now = database_now()
    gate = lock_gates([agent]).get(agent)
    if gate is None or gate.view.state != GateState.SHUT or (gate.view.probe_at or now) <= now:
        return Refusal.NOT_SHUT
    move(gate, replace(gate.view, probe_at=now, paused_until=None))
    Event.objects.create(kind=EventKind.PROBE, actor=actor, reason=reason, detail={"agent": agent})
    return None


def _outage_begins(agent: str) -> None:
    Hold.objects.bulk_create(
        [
            Hold(
                scope=Scope.AGENT,
                agent=agent,
                cause=Cause.BREAKER,
                reason="too many of its last calls failed",
                actor=BY,
            )
        ],
        ignore_conflicts=True,
    )
    alerts.raise_alert(
        f"gate/{agent}",
        severity=Severity.WARNING,
        title=f"{agent}: its gate is shut, too many calls failed",
        detail="Its steps wait without being counted as failed. A probe goes out from time to time; "
        "when it succeeds, the backlog is let through step by step, and this alert is closed.",
    )


def _outage_ends(agent: str) -> None:
    Hold.objects.filter(scope=Scope.AGENT, agent=agent, cause=Cause.BREAKER, until=None).update(
        until=DatabaseNow(), released_by=BY, released_why="it answers again"
    )
    alerts.close(f"gate/{agent}")


def database_now() -> float:
    """Return the Unix time of the database's clock."""
    return float(sql.run("SELECT extract(epoch FROM clock_timestamp())::float8", {})[0][0])
