"""The statements by which a claim finds and locks steps, for many agents at once; each is compiled once.

Their parameters are arrays with a value for each agent: agents, isolated, from_turn, pending_from (where
to begin), aged_after, limits; and excluded (ids of steps) and steps_held.
"""

from datetime import timedelta
from functools import cache
from typing import Any

from django.contrib.postgres.aggregates import BoolOr
from django.db.models import (
    BooleanField,
    Case,
    DateTimeField,
    Exists,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    IntegerField,
    OrderBy,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.lookups import Exact

from ..database.sql import MANY, Among, Parameter, UnixTime, compiled
from ..decisions.gate import BEHIND
from ..models import Hold, Task
from ..models.fields import DatabaseNow
from ..models.hold import Scope
from ..states import StepState

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
        Parameter("steps_held", output_field=BooleanField()),
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
ISOLATED = Parameter("isolated", output_field=BooleanField())
FROM_TURN = Q(steps__turn__gte=Parameter("from_turn", "bigint", IntegerField()))
IN_TURN = ("-steps__priority", "steps__turn", "steps__id")


def _due(which: Q, *order: OrderBy | str) -> QuerySet[Task, tuple[Any, ...]]:
    """Return the claimable pending steps, with their tasks, and lock both.

    Steps whose task another session has locked are skipped, and the scan continues behind them. The
    query begins with the task: it is locked first, so that a locked task's steps are not locked either.
    The update by key follows as a second statement: an UPDATE over a locking sub-select with a limit
    may run the sub-select again, and take more than the limit. The lock is without the key: inserting
    an attempt locks its step's key, and must not wait for this.
    """
    return (
        Task.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(
            which,
            ~Q(Among(F("steps__id"), Parameter("excluded", "bigint[]"))),
            steps__agent=Parameter("agent"),
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
            "steps__loads",
            "reference",
            UnixTime("steps__pending_since"),
            Subquery(OF_HELD_TASK),
            IS_HELD,
        )
    )


def _for_agents(which: QuerySet[Task, tuple[Any, ...]]) -> str:
    """Return the statement for the first steps of each agent, behind the agent's name."""
    statement = compiled(which[:MANY])
    for name in ("agent", "isolated", "from_turn", "pending_from", "aged_after", "limit"):
        statement = statement.replace(f"%({name})s", f'a."{name}"')
    return f"""
SELECT a.agent, found.* FROM unnest(%(agents)s::text[], %(isolated)s::boolean[],
    %(from_turn)s::bigint[], %(pending_from)s::timestamptz[], %(aged_after)s::float8[],
    %(limits)s::bigint[]) AS a (agent, isolated, from_turn, pending_from, aged_after, "limit")
CROSS JOIN LATERAL ({statement}) AS found
"""  # noqa: S608 - of our own models


@cache
def in_turn() -> str:
    """Return the statement for the first steps by priority, then turn: one walk along step_turn."""
    return _for_agents(_due(FROM_TURN & Q(steps__isolated=ISOLATED), *IN_TURN))


@cache
def aged() -> str:
    """Return the statement for the steps that have waited the longest, and for long: step_waiting."""
    waits = Func(F("steps__run_after"), F("steps__held_by"), function="num_nonnulls")
    waits.output_field = IntegerField()
    ago = Parameter("aged_after", "float8", FloatField()) * Value(timedelta(seconds=1))
    since = ExpressionWrapper(DatabaseNow() - ago, output_field=DateTimeField())
    oldest = Parameter("pending_from", "timestamptz", DateTimeField())
    which = Q(
        Exact(waits, 0),
        steps__isolated=False,
        steps__pending_since__gte=oldest,
        steps__pending_since__lt=since,
    )
    return _for_agents(_due(which, "steps__pending_since", "steps__id"))


# A probe is of the steps that may go: one that was never sent; else one that has been sent the least.
# One with a trouble of its own, or that goes alone, counts as sent more often than it was, but does not
# wait for all others: one of these may be back before each probe. So probes take turns. The second
# reads all that wait for the agent, but only when each of these was sent before.
@cache
def fresh() -> str:
    """Return the statement for the first steps that were never sent."""
    return _for_agents(_due(FROM_TURN & Q(steps__isolated=ISOLATED, steps__attempt=0), *IN_TURN))


@cache
def least() -> str:
    """Return the statement for the steps that were sent the least."""
    likely_to_fail = Q(steps__own_trouble=True) | Q(steps__isolated=True)
    sent = F("steps__attempt") + Case(When(likely_to_fail, BEHIND), default=0)
    which = Q(ISOLATED) | Q(steps__isolated=False)
    return _for_agents(_due(which, sent.asc(), *IN_TURN))
