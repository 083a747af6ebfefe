"""What waits for an agent, how much is out, and which steps go next."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from functools import cache
from math import inf
from typing import Any, NamedTuple

from django.contrib.postgres.aggregates import BoolOr
from django.db.models import (
    BooleanField,
    Case,
    Exists,
    F,
    OrderBy,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    When,
)

from .. import sql
from ..gate import BEHIND
from ..models import Hold, Task
from ..models.hold import Scope
from ..sql import Among, Given, UnixTime, compiled
from ..states import GateState, StepState
from .gates import FIRST, LockedGate
from .holds import AGENT_UNTIL, ALL_UNTIL, STEPS_UNTIL

# What an agent has at work, of the steps `s`. It has stopped by an attempt's complete-by: what has passed
# it takes no place, though it may be long until it is counted, as when its task is locked; nor does
# what was answered, when the reply waits for a locked row (dead_letter_step, read once).
AT_WORK = """s.process_state = 'processing' AND s.locked_by IS NOT NULL
        AND s.complete_by > (SELECT clock_timestamp())
        AND s.id NOT IN (SELECT step FROM orchestration_deadletter WHERE step IS NOT NULL)"""

# What of these agents' policies a request needs, how many each has in flight, and until when it,
# everything, or some step of a workflow was held: by partial indexes, no table scan.
DEMAND = f"""
SELECT p.agent, p.time_allowed, p.call_timeout, p.tries, p.key_memory,
    (SELECT count(*) FROM orchestration_step s WHERE s.agent = p.agent AND {AT_WORK}) AS in_flight,
    {FIRST.format(agent="p.agent", alone="")} IS NOT NULL,
    {FIRST.format(agent="p.agent", alone="AND alone")} IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM orchestration_step s WHERE s.agent = p.agent AND s.alone
        AND {AT_WORK}),
    EXISTS (SELECT 1 FROM orchestration_hold h WHERE h.scope = 'agent' AND h.agent = p.agent
        AND h.until IS NULL AND h.cause <> 'breaker'),
    extract(epoch FROM {AGENT_UNTIL})::float8, extract(epoch FROM {ALL_UNTIL})::float8,
    extract(epoch FROM {STEPS_UNTIL})::float8, extract(epoch FROM clock_timestamp())::float8
FROM orchestration_policy p
WHERE p.agent = ANY(%(agents)s)
ORDER BY p.agent
"""  # noqa: S608 - a constant of our own

# Of a step's task: whether a hold is in force, or only was (NULL: never).
OF_HELD_TASK = (
    Hold.objects.filter(task=OuterRef("id"))
    .order_by()
    .values("task")
    .annotate(in_force=BoolOr(Q(until=None)))
    .values("in_force")
)
IS_HELD = Case(
    When(
        Given("steps_held", output_field=BooleanField()),
        Exists(
            Hold.objects.filter(
                scope=Scope.STEP,
                agent="",
                workflow=OuterRef("workflow"),
                step=OuterRef("steps__name"),
                until=None,
            )
        ),
    )
)
LONE = Given("alone", output_field=BooleanField())
IN_TURN = ("-steps__priority", "steps__turn", "steps__id")


def _due(which: Q, *order: OrderBy | str) -> QuerySet[Task, tuple[Any, ...]]:
    """Return the pending steps that may go, with their tasks, and lock both.

    Those whose task another session has locked are skipped, and the scan goes on behind them. The
    query begins with the task as that is locked first, so that of a locked one not even the step is.
    Selected first and updated by key after: an UPDATE over a locking sub-select with a limit may run
    that again, and take more than the limit. No key lock: inserting an attempt takes one on its step,
    which must not wait for us.
    """
    return (
        Task.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(
            which,
            ~Q(Among(F("steps__id"), Given("besides", "bigint[]"))),
            steps__agent=Given("agent"),
            steps__process_state=StepState.PENDING,
            steps__run_after=None,
            steps__held_by=None,
        )
        .order_by(*order)
        .values_list(
            "steps__id",
            "id",
            "workflow",
            "state",
            "steps__name",
            "steps__direction",
            "steps__action",
            "steps__generation",
            "steps__attempt",
            "steps__request",
            "reference",
            UnixTime("steps__pending_since"),
            Subquery(OF_HELD_TASK),
            IS_HELD,
        )
    )


@cache
def in_turn(limit: int) -> str:
    """Return the statement for the first steps by priority, then turn: one walk along step_turn."""
    return compiled(_due(Q(steps__alone=LONE), *IN_TURN)[:limit])


# A probe is of the steps that may go: one that was never sent; else one that has been sent the least.
# One with a trouble of its own, or that goes alone, counts as sent more often than it was, but does not
# wait for all others: one of these may be back before each probe. So probes take turns. The second
# reads all that wait for the agent, but only when each of these was sent before.
@cache
def fresh(limit: int) -> str:
    """Return the statement for the first steps that were never sent."""
    return compiled(_due(Q(steps__alone=LONE, steps__attempt=0), *IN_TURN)[:limit])


@cache
def least(limit: int) -> str:
    """Return the statement for the steps that were sent the least."""
    likely_to_fail = Q(steps__own_trouble=True) | Q(steps__alone=True)
    sent = F("steps__attempt") + Case(When(likely_to_fail, BEHIND), default=0)
    which = Q(LONE) | Q(steps__alone=False)
    return compiled(_due(which, sent.asc(), *IN_TURN)[:limit])


IN_FLIGHT_SINCE = f"""
SELECT count(*) FROM orchestration_step s WHERE s.agent = %(agent)s AND {AT_WORK}
    AND s.dispatched_at >= to_timestamp(%(since)s)
"""  # noqa: S608 - the same

MOST_ROUNDS = 5  # of looking past held steps, in one turn; the rest has the next


class Demand(NamedTuple):
    """One agent: the limits of its requests (seconds, calls), its load, and what waits for it.

    `lone` says that a step is due that goes alone, and that none such is in flight.
    """

    agent: str
    time_allowed: float
    call_timeout: float
    tries: int
    key_memory: float | None
    in_flight: int
    wanted: bool
    lone: bool
    held: bool
    held_until: float | None
    all_held_until: float | None
    steps_held_until: float | None
    now: float

    @property
    def everything_held(self) -> bool:
        """Return whether a hold on everything is in force."""
        return self.all_held_until == inf

    @property
    def steps_held(self) -> bool:
        """Return whether a hold on a step of a workflow is in force."""
        return self.steps_held_until == inf

    def stood(self, since: float | None) -> bool:
        """Return whether a hold on more than a task was in force after `since`."""
        ends = (self.held_until, self.all_held_until, self.steps_held_until)
        return since is not None and any(end is not None and end > since for end in ends)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """A pending step, locked, and so is its task; `of_held_task` is None if that was never held."""

    id: int
    task: Any
    workflow: str
    task_state: str
    name: str
    direction: str
    action: str
    generation: int
    attempt: int
    request: dict[str, Any]
    reference: str
    since: float | None
    of_held_task: bool | None
    is_held: bool | None

    @property
    def held(self) -> bool:
        """Return whether a hold on its task, or on its name, is in force."""
        return bool(self.of_held_task or self.is_held)


# The queues in which held steps were met (agent, alone), and whether places were left for them.
Met = dict[tuple[str, bool], bool]

Statement = Callable[[int], str]  # by how many steps it takes at most

PENDING = tuple(field.name for field in fields(Pending))


def demands(agents: Collection[str]) -> list[Demand]:
    """Return what there is to do for agents whose gates are locked."""
    return [Demand(*row) for row in sql.run(DEMAND, {"agents": list(agents)})]


def in_flight(demand: Demand, gate: LockedGate) -> int:
    """Return how many requests are out; unless all is well, of those since the breaker opened."""
    since = gate.view.opened_at
    if gate.view.state == GateState.CLOSED or since is None:
        return demand.in_flight
    found = sql.run(IN_FLIGHT_SINCE, {"agent": demand.agent, "since": since})
    return int(found[0][0])


def take(demand: Demand, gate: LockedGate, places: int, met: Met) -> list[Pending]:
    """Lock up to `places` steps that may go, at most one of them of those that go alone.

    That one is first, so that a full window does not pass it over for ever; but it is no good probe.
    """
    if gate.view.state in {GateState.OPEN, GateState.HALF_OPEN}:
        unsent = _take(fresh, demand, places, met)
        return unsent or _take(least, demand, places, met, alone=demand.lone)
    if not demand.lone:
        return _take(in_turn, demand, places, met)
    one = _take(in_turn, demand, min(1, places), met, alone=True)
    return one + _take(in_turn, demand, places - len(one), met)


def _take(
    statement: Statement, demand: Demand, places: int, met: Met, *, alone: bool = False
) -> list[Pending]:
    """Lock up to `places` steps that may go; look past those that are held, and note where."""
    taken: list[Pending] = []
    seen: list[int] = []
    for _ in range(MOST_ROUNDS):
        found = _lock_pending(statement, demand, places - len(taken), seen, alone)
        free = [step for step in found if not step.held]
        taken += free
        seen += [step.id for step in found]
        if len(free) == len(found):
            break
        for queue in {alone, False}:
            met[demand.agent, queue] = len(taken) < places
    return taken


def _lock_pending(
    statement: Statement, demand: Demand, limit: int, besides: Sequence[int], alone: bool
) -> list[Pending]:
    """Lock up to `limit` steps that are due, with their tasks; skip what others have locked."""
    if limit <= 0:
        return []
    wanted = {
        "agent": demand.agent,
        "alone": alone,
        "besides": list(besides),
        "steps_held": demand.steps_held,
    }
    rows = (dict(zip(PENDING, row, strict=True)) for row in sql.run(statement(limit), wanted))
    return [Pending(**{**row, "request": json.loads(row["request"])}) for row in rows]
