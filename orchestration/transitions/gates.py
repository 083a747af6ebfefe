"""Lock the gates to dispatch; store what attempts change in them (P16, P28)."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from django.db import DatabaseError, transaction

from ..alerting import alerts
from ..database import clock, prepared, sql
from ..decisions.gate import GateView, Limits, Slot, after_idle, again_at
from ..decisions.progress import Refusal
from ..models import Event, Hold, Policy
from ..models.alert import Severity
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..models.hold import HoldCause, Scope
from ..models.step import claimable
from ..states import GateState

COLUMNS = [field.name for field in fields(GateView)]
SLOTS = COLUMNS.index("slots")
TIMES = {"since", "answered_at", "opened_at", "probe_at", "paused_until", "tokens_at"}
# as the columns of a policy are called: those of its limits
LIMITS = {
    field.name: field.name if hasattr(Policy, field.name) else f"breaker_{field.name}"
    for field in fields(Limits)
}

# What a gate's decisions need, of its row `g` and its agent's policy `p`.
STATE = ", ".join(
    [f"p.{column}" for column in LIMITS.values()]
    + [
        f"extract(epoch FROM g.{column})::float8" if column in TIMES else f"g.{column}"
        for column in COLUMNS
    ]
)
# The gates are locked by a statement of its own: in READ COMMITTED what the locking statement itself
# reads of other tables could be older than what the former holder of the lock committed.
LOCK = """
SELECT agent FROM orchestration_gate WHERE agent = ANY(%(agents)s::text[]) ORDER BY agent
FOR NO KEY UPDATE
"""
SKIP = f"{LOCK} SKIP LOCKED"
READ = f"""
SELECT p.agent, {STATE} FROM orchestration_policy p JOIN orchestration_gate g USING (agent)
WHERE p.agent = ANY(%(agents)s::text[]) ORDER BY p.agent
"""  # noqa: S608 - names of our own

# All gates of a turn at once; no index holds any of these columns, so the rows stay where they are.
WRITE = """
UPDATE orchestration_gate g SET state = r.state, since = to_timestamp(r.since), slots = r.slots,
    answered_at = to_timestamp(r.answered_at), opened_at = to_timestamp(r.opened_at),
    probe_at = to_timestamp(r.probe_at), trips = r.trips, allowance = r.allowance,
    paused_until = to_timestamp(r.paused_until), tokens = r.tokens,
    tokens_at = to_timestamp(r.tokens_at)
FROM unnest(%(agents)s::text[], %(state)s::text[], %(since)s::float8[], %(slots)s::jsonb[],
    %(answered_at)s::float8[], %(opened_at)s::float8[], %(probe_at)s::float8[], %(trips)s::int[],
    %(allowance)s::int[], %(paused_until)s::float8[], %(tokens)s::float8[], %(tokens_at)s::float8[])
    AS r (agent, state, since, slots, answered_at, opened_at, probe_at, trips, allowance,
        paused_until, tokens, tokens_at)
WHERE g.agent = r.agent
"""

# The first of an agent's steps that may be claimed, NULL if there is none. In this order only
# step_turn is worth using: an EXISTS may choose to read the whole table up to the first.
FIRST = f"""(SELECT id FROM orchestration_step s
    WHERE agent = {{agent}} AND {claimable("s")}
    ORDER BY agent, isolated, priority DESC, turn, id LIMIT 1)"""  # noqa: S608 - a constant of our own

# Gates that recover although nothing waits that may go, or soon will be: along step_turn,
# step_retry and step_in_flight.
UNASKED = f"""
SELECT g.agent FROM orchestration_gate g WHERE g.state = 'recovering'
  AND {FIRST.format(agent="g.agent")} IS NULL
  AND (SELECT id FROM orchestration_step s WHERE s.agent = g.agent AND s.process_state = 'pending'
    AND s.run_after < (SELECT clock_timestamp()) + interval '60 seconds'
    ORDER BY s.run_after LIMIT 1) IS NULL
  AND NOT EXISTS (SELECT 1 FROM orchestration_step s WHERE s.agent = g.agent
    AND s.process_state = 'processing' AND s.locked_by IS NOT NULL)
"""  # noqa: S608 - put together from constants

BY = "circuit breaker"  # who opens and closes a breaker by itself


@dataclass(kw_only=True, slots=True)
class LockedGate:
    """A gate whose row is locked, and the limits of its agent; `view` is yet to be written."""

    agent: str
    view: GateView
    limits: Limits
    stored: GateView


_contested: set[str] = set()  # agents; of this process


def lock_gates(agents: Collection[str], *, wait: bool = False) -> dict[str, LockedGate]:
    """Lock the gates of `agents`; return those that are locked now (`lock_and_read`)."""
    return {gate.agent: gate for gate, _ in lock_and_read(agents, wait=wait)}


def lock_and_read(
    agents: Collection[str],
    reading: str = READ,
    values: Mapping[str, Any] = {},
    *,
    wait: bool = False,
) -> list[tuple[LockedGate, Sequence[Any]]]:
    """Lock the gates of `agents`, in the order of their names; return those that are locked now.

    `reading` is a statement that returns the columns of `READ`, and others, which are returned as well;
    it takes `values`.

    A fellow scheduler holds a gate for a moment: it is waited for. What keeps one for longer is another
    session: the error is raised (`sql.is_busy`), and from then on this process skips that gate until
    it finds it free. With `wait` none is skipped, and the wait is the session's.
    """
    names = set(agents)
    skipped = set() if wait else names & _contested
    rows = []
    before = "" if wait else sql.BRIEFLY
    try:
        if names - skipped:
            parameters = {"agents": list(names - skipped), **values}
            parts = [prepared.Part(LOCK, parameters), prepared.Part(reading, parameters)]
            rows += prepared.run_all(parts, before)
    except DatabaseError as error:
        if sql.is_busy(error) and not wait:
            _contested.update(names)  # which of them it was, the next try finds out
        raise
    if skipped:
        free = [agent for (agent,) in prepared.run(SKIP, {"agents": list(skipped)}, before)]
        rows += prepared.run(reading, {"agents": free, **values}) if free else []
    _contested.difference_update(agent for agent, *_ in rows)
    return [_locked(row) for row in rows]


def _locked(row: Sequence[Any]) -> tuple[LockedGate, Sequence[Any]]:
    agent, row = row[0], row[1:]
    limits, row = row[: len(LIMITS)], row[len(LIMITS) :]
    view, others = sql.record(GateView, row[: len(COLUMNS)]), row[len(COLUMNS) :]
    view = replace(view, slots=[Slot(*slot) for slot in json.loads(row[SLOTS])])
    gate = LockedGate(agent=agent, view=view, limits=sql.record(Limits, limits), stored=view)
    return gate, others


def contested(agents: Collection[str]) -> set[str]:
    """Return those of `agents` whose gate another session keeps locked, as the last look found."""
    return _contested.intersection(agents)


def write(gates: Iterable[LockedGate], also: Sequence[prepared.Part] = ()) -> list[Any]:
    """Write what has become of locked gates; open or close the one hold and alert of an outage.

    `also` are statements of the same change, sent with it; return the rows of the last one.
    """
    moved = [gate for gate in gates if gate.view != gate.stored]
    parts = list(also)
    if moved:
        values = {name: [getattr(gate.view, name) for gate in moved] for name in COLUMNS}
        values["slots"] = sql.as_json(values["slots"])
        agents = [gate.agent for gate in moved]
        parts.insert(0, prepared.Part(WRITE, {"agents": agents, **values}))
    rows = prepared.run_all(parts) if parts else []
    for gate in moved:
        before, gate.stored = gate.stored, gate.view
        if before.state == GateState.CLOSED != gate.view.state:
            _outage_begins(gate.agent)
        elif before.state != GateState.CLOSED == gate.view.state:
            _outage_ends(gate.agent)
    return rows


@transaction.atomic
def close_unasked() -> int:
    """Close the breakers that were recovering until their backlog was gone; return how many.

    Otherwise they would wait for traffic that may never come, and their alerts would stay.
    """
    gates = lock_gates([agent for (agent,) in sql.run(UNASKED, {})])
    now = clock.database_now().timestamp()
    for gate in gates.values():
        gate.view = after_idle(gate.view, now)
    write(gates.values())
    return len(gates)


@transaction.atomic
def probe_now(agent: str, *, actor: str, reason: str) -> Refusal | None:
    """Make a probe due at once, and end a pause; return why not, or None when it was done.

    The next claim sends the probe of an open breaker: exactly one request, as ever, even where the service
    asked to be left alone for longer. Behind a closed one, what waited for the end of that pause goes.
    """
    now = clock.database_now().timestamp()
    gate = lock_gates([agent], wait=True).get(agent)
    if gate is None or again_at(gate.view, now) is None:
        return Refusal.NOT_WAITING
    due = now if gate.view.state == GateState.OPEN else None
    gate.view = replace(gate.view, probe_at=due, paused_until=None)
    write([gate])
    Event.objects.create(kind=EventKind.PROBE, actor=actor, reason=reason, detail={"agent": agent})
    return None


def _outage_begins(agent: str) -> None:
    Hold.objects.bulk_create(
        [
            Hold(
                scope=Scope.AGENT,
                agent=agent,
                cause=HoldCause.BREAKER,
                reason="too many calls failed",
                actor=BY,
            )
        ],
        ignore_conflicts=True,
    )
    alerts.raise_alert(
        f"gate/{agent}",
        severity=Severity.WARNING,
        title=f"{agent}: circuit breaker open, too many calls failed",
        detail="The agent's steps wait and are not counted as failed. Probes are sent at intervals. "
        "When a probe succeeds, the backlog resumes gradually and this alert closes.",
    )


def _outage_ends(agent: str) -> None:
    Hold.objects.filter(scope=Scope.AGENT, agent=agent, cause=HoldCause.BREAKER, until=None).update(
        until=DatabaseNow(), released_by=BY, released_why="the service answers again"
    )
    alerts.close(f"gate/{agent}")
