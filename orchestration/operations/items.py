"""Compute the dry run of an operation, and freeze its items: one statement each.

Both use the same query: the failed steps or the tasks of a selection, each with the reason to skip it,
if there is one. So the dry run shows what the operation does, for any number of items.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db.models import Q, QuerySet

from .. import registry
from ..database import sql
from ..decisions.progress import Refusal
from ..decisions.recovery import KEY_FORGOTTEN
from ..models import Operation, Step
from ..models.operation import Act, ItemState
from ..states import StepState

NOTHING_FAILED = "no step is in error"
NOTHING_AWAITED = "the step awaits no result"
IN_HAND = "'operation ' || o.operation_id || ' already includes it'"

# As `decisions.compensation.may_be_done`; a test compares the two for every row that may be.
MAY_BE_DONE = f"""(s.process_state = '{StepState.PROCESSED}' OR s.in_doubt
    OR s.process_state = 'processing' AND s.locked_by IS NOT NULL)"""

# What is chosen one by one is accounted for in any case; of what a filter or an incident chooses,
# that which the act does not concern is left out.
STEPS = f"""
SELECT t.id AS task, s.id AS step, s.attempt, coalesce(s.process_state, t.state) AS seen,
    coalesce(n.fingerprint, a.fingerprint, '') AS cause, '{{}}'::text[] AS stands,
    CASE WHEN s.id IS NULL THEN %(nothing)s
        WHEN o.id IS NOT NULL THEN {IN_HAND}
        WHEN %(same_key)s AND s.in_doubt AND s.error_code = %(forgotten)s THEN %(no_key)s
        ELSE '' END AS why
FROM orchestration_task t
LEFT JOIN orchestration_step s ON s.task_id = t.id AND s.process_state = %(standing)s
    AND (%(every)s OR s.id IN (ONLY))
LEFT JOIN orchestration_alert a ON a.id = s.alert_id
LEFT JOIN orchestration_incident n ON n.id = s.incident_id
LEFT JOIN orchestration_operationitem o ON o.step_id = s.id AND o.state IN ('waiting', 'sent')
WHERE t.id IN (CHOSEN) AND (s.id IS NOT NULL OR %(explicit)s)
"""  # noqa: S608 - constants of our own; what is chosen is a statement of Django's, with parameters

TASKS = """
SELECT t.id AS task, NULL::bigint AS step, NULL::int AS attempt, t.state AS seen, '' AS cause,
    {stands}::text[] AS stands,
    CASE WHEN o.id IS NOT NULL THEN {in_hand} {why} ELSE '' END AS why
FROM orchestration_task t
LEFT JOIN orchestration_operationitem o
    ON o.task_id = t.id AND o.step_id IS NULL AND o.state IN ('waiting', 'sent')
WHERE t.id IN (CHOSEN) AND (%(explicit)s OR {concerned})
"""

# What shows that it happened: a forced undo lets it stand.
STANDING = f"""FROM orchestration_step s WHERE s.task_id = t.id
    AND s.direction = 'do' AND s.irreversible <> '' AND {MAY_BE_DONE}"""

HELD = """EXISTS (SELECT 1 FROM orchestration_hold h
    WHERE h.task_id = t.id AND h.scope = 'task' AND h.cause = 'hand' AND h.until IS NULL)"""

STATEMENTS = {
    Act.RESUBMIT: STEPS,
    Act.BY_HAND: STEPS,
    Act.UNDO: TASKS.format(
        in_hand=IN_HAND,
        stands=f"""CASE WHEN %(forced)s THEN ARRAY(SELECT s.name {STANDING} ORDER BY s.id)
            ELSE '{{}}' END""",
        why=f"""WHEN t.undo_at IS NOT NULL THEN %(undone)s
            WHEN NOT %(forced)s AND EXISTS (SELECT 1 {STANDING}) THEN %(irreversible)s""",
        concerned="t.undo_at IS NULL",
    ),
    Act.HOLD: TASKS.format(
        in_hand=IN_HAND,
        stands="'{}'",
        why=f"WHEN t.state IN ('processed', 'undone') THEN %(ended)s WHEN {HELD} THEN %(held)s",
        concerned="t.state NOT IN ('processed', 'undone')",
    ),
    Act.RELEASE: TASKS.format(
        in_hand=IN_HAND,
        stands="'{}'",
        why=f"WHEN NOT {HELD} THEN %(not_held)s",
        concerned=HELD,
    ),
}

# The calls that follow at once, and the money they move.
CALLS_OF_STEPS = """
SELECT s.agent, s.action, coalesce(s.charges ->> 'currency', ''), count(*),
    coalesce(sum((s.charges ->> 'amount')::bigint), 0)
FROM {items} JOIN orchestration_step s ON s.id = i.step GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
CALLS_OF_UNDO = f"""
SELECT s.agent, s.undo_action, coalesce(s.charges ->> 'currency', ''), count(*),
    coalesce(sum((s.charges ->> 'amount')::bigint), 0)
FROM {{items}} JOIN orchestration_step s ON s.task_id = i.task
WHERE s.direction = 'do' AND s.undo_action <> '' AND {MAY_BE_DONE}
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""  # noqa: S608 - constants of our own
# What stands where an undo is forced, or forbids it where it is not: the commonest.
STAND = f"""
SELECT s.name, s.irreversible, count(*) FROM ({{items}}) AS t
JOIN orchestration_step s ON s.task_id = t.task
WHERE t.why IN ('', %(irreversible)s) AND s.direction = 'do' AND s.irreversible <> '' AND {MAY_BE_DONE}
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20
"""  # noqa: S608 - constants of our own
# Tasks about one may have undone a part of it, as a return refunds: the undo repeats that (task_by_about).
FOLLOWED = """
SELECT count(*) FROM ({items}) AS f JOIN orchestration_task t ON t.id = f.task
WHERE f.why = '' AND EXISTS (SELECT FROM orchestration_task o WHERE o.about_reference = t.reference
    AND o.about_reference > '' AND o.about_workflow = t.workflow AND o.state <> 'undone')
"""
CALLS = {Act.RESUBMIT: CALLS_OF_STEPS, Act.BY_HAND: CALLS_OF_STEPS, Act.UNDO: CALLS_OF_UNDO}

COUNT = """
SELECT why, count(*), count(*) FILTER (WHERE stands <> '{{}}') FROM ({items}) AS f GROUP BY why
"""

FREEZE = """
INSERT INTO orchestration_operationitem
    (operation_id, task_id, step_id, attempt, seen, cause, stands, state, reason, ended_at)
SELECT %(operation)s, task, step, attempt, seen, cause, stands,
    CASE why WHEN '' THEN 'waiting' ELSE 'skipped' END, why,
    CASE why WHEN '' THEN NULL ELSE clock_timestamp() END
FROM ({items}) AS f {only} ORDER BY task, step {limit}
"""

# One operation at a time is frozen, so each sees the open items of the others.
LOCK = "SELECT pg_advisory_xact_lock(1516895233)"


@dataclass(frozen=True, kw_only=True)
class SelectedTasks:
    """The selected tasks, by their ids, and optionally only some of their failed steps.

    `explicit`: they were selected one by one, so each gets an item. `most` is the number of items that the
    person saw, if the dry run may have changed since. `forced`: an undo includes tasks with a step that
    cannot be undone. `awaiting`: of the steps that await a result, and not of those in error.
    """

    tasks: QuerySet[Any, UUID]
    steps: QuerySet[Step, int] | None = None
    explicit: bool = False
    most: int | None = None
    forced: bool = False
    awaiting: bool = False


def preview_figures(act: Act, chosen: SelectedTasks) -> dict[str, Any]:
    """Return what an action on the selection would do, as data; nothing is written.

    `eligible` counts items, `skipped` counts the others by reason; `calls` are {agent, action,
    count}; `money` is the sum moved, by currency, in minor units. For an undo, `forced` counts the items
    with irreversible steps, and `standing` lists these steps: {step, why, count}. Without force, it lists
    the steps that forbid the undo. `followed` counts the items about which there are other tasks that were
    not undone: the undo may repeat what these did.
    """
    query, parameters = _statement_for(act, chosen)
    rows = sql.run(COUNT.format(items=query), parameters)
    counts = {why: count for why, count, _ in rows}
    calls, money = _calls(act, f"(SELECT * FROM ({query}) AS f WHERE why = '') AS i", parameters)  # noqa: S608
    return {
        "eligible": counts.pop("", 0),
        "skipped": dict(sorted(counts.items(), key=lambda pair: -pair[1])),
        "calls": calls,
        "money": money,
        "forced": sum(forced for why, _, forced in rows if not why),
        "standing": _standing(query, parameters) if act == Act.UNDO else [],
        "followed": _followed(query, parameters) if act == Act.UNDO else 0,
    }


def _standing(query: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = sql.run(STAND.format(items=query), parameters)
    return [{"step": step, "why": why, "count": count} for step, why, count in rows]


def _followed(query: str, parameters: Mapping[str, Any]) -> int:
    ((count,),) = sql.run(FOLLOWED.format(items=query), parameters)
    return int(count)


def freeze(operation: Operation, chosen: SelectedTasks) -> None:
    """Write the items of an operation as the selection is now; call it in a transaction."""
    sql.run(LOCK, {})
    query, parameters = _statement_for(Act(operation.act), chosen)
    only, limit = ("WHERE why = ''", "LIMIT %(sample)s") if operation.sample else ("", "")
    sql.run(
        FREEZE.format(items=query, only=only, limit=limit),
        {**parameters, "operation": operation.id, "sample": operation.sample},
    )


def frozen_money(operation: Operation) -> dict[str, int]:
    """The money that an operation's waiting items move, by currency, in minor units."""
    items = """(SELECT task_id AS task, step_id AS step FROM orchestration_operationitem
        WHERE operation_id = %(operation)s AND state = 'waiting') AS i"""
    return _calls(Act(operation.act), items, {"operation": operation.id})[1]


def money_warning(operation: Operation) -> str:
    """Return a warning if the operation marks steps that move money as done by hand."""
    if operation.act != Act.BY_HAND:
        return ""
    agents = [name for name, agent in registry.agents.items() if agent.moves_money]
    steps = Step.objects.filter(
        Q(agent__in=agents) | Q(charges__isnull=False),
        operation_items__operation=operation, operation_items__state=ItemState.WAITING,
    )  # fmt: skip
    return "it marks steps that move money as done by hand" if steps.exists() else ""


def _calls(
    act: Act, items: str, parameters: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    if act not in CALLS:
        return [], {}
    counts: dict[tuple[str, str], int] = {}
    money: dict[str, int] = {}
    for agent, action, currency, count, amount in sql.run(
        CALLS[act].format(items=items), parameters
    ):
        counts[agent, action] = counts.get((agent, action), 0) + count
        if currency:
            money[currency] = money.get(currency, 0) + int(amount)
    calls = [
        {"agent": agent, "action": action, "count": count}
        for (agent, action), count in counts.items()
    ]
    return ([] if act == Act.BY_HAND else calls), money


def _statement_for(act: Act, chosen: SelectedTasks) -> tuple[str, dict[str, Any]]:
    """Return the statement that finds the items, and its parameters."""
    ids, values = _statement(chosen.tasks, "chosen", "uuid")
    only, more = "NULL", dict[str, Any]()
    if chosen.steps is not None:
        only, more = _statement(chosen.steps, "only", "bigint")
    parameters = {
        "explicit": chosen.explicit,
        "every": chosen.steps is None,
        "forced": chosen.forced,
        "same_key": act == Act.RESUBMIT,
        "forgotten": KEY_FORGOTTEN,
        "standing": (StepState.AWAITING if chosen.awaiting else StepState.ERROR).value,
        "nothing": NOTHING_AWAITED if chosen.awaiting else NOTHING_FAILED,
        "no_key": Refusal.KEY_FORGOTTEN.value,
        "undone": Refusal.NOT_UNDOABLE.value,
        "irreversible": Refusal.IRREVERSIBLE.value,
        "ended": Refusal.ENDED.value,
        "held": Refusal.HELD_ALREADY.value,
        "not_held": Refusal.NOT_HELD.value,
    }
    query = STATEMENTS[act].replace("CHOSEN", ids).replace("ONLY", only)
    return query, {**parameters, **values, **more}


def _statement(rows: QuerySet[Any, Any], name: str, kind: str) -> tuple[str, dict[str, Any]]:
    """Return Django's statement for the ids of rows, with named parameters."""
    try:
        statement, values = rows.query.sql_with_params()
    except EmptyResultSet:
        return f"SELECT NULL::{kind} WHERE false", {}
    names = [f"{name}{number}" for number in range(len(values))]
    named = statement.replace("%%", "%%%%") % tuple(f"%({placeholder})s" for placeholder in names)
    return named, dict(zip(names, values, strict=True))
