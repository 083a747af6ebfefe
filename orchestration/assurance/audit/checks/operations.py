"""Invariant 13: the counts of operations match their items; large ones started after approval."""

from ....applications.audits import LATELY, Check, Scope

LOOK = "Believe the tasks, not the operation; look for what wrote past the guards."

OPERATIONS = (
    Check(
        invariant=13,
        scope=Scope.ALL,
        remedy="Abort it, look at the tasks of these items, and act on them anew.",
        query=f"""
        SELECT 'operation ' || o.id, 'has ended, but ' || count(*) || ' of its items have not'
        FROM orchestration_operation o JOIN orchestration_operationitem i
            ON i.operation_id = o.id AND i.state IN ('waiting', 'sent')
        WHERE o.ended_at IS NOT NULL AND {LATELY.format("o.ended_at")} GROUP BY o.id
        """,  # noqa: S608 - a condition of our own
    ),
    Check(
        invariant=13,
        scope=Scope.ALL,
        remedy=LOOK,
        query=f"""
        SELECT 'operation ' || o.id, 'says ' || o.fixed || ' fixed, ' || o.again + o.other
            || ' failed, ' || o.skipped || ' skipped, but its items say ' || i.fixed || ', '
            || i.failed || ', ' || i.skipped
        FROM orchestration_operation o CROSS JOIN LATERAL (
            SELECT count(*) AS items, count(*) FILTER (WHERE state = 'fixed') AS fixed,
                count(*) FILTER (WHERE state IN ('again', 'other')) AS failed,
                count(*) FILTER (WHERE state = 'skipped') AS skipped
            FROM orchestration_operationitem WHERE operation_id = o.id) i
        WHERE o.ended_at IS NOT NULL AND {LATELY.format("o.ended_at")}
          AND (o.items <> i.items + o.removed_items
            OR o.removed_items = 0
                AND (o.fixed, o.again + o.other, o.skipped) <> (i.fixed, i.failed, i.skipped))
        """,  # noqa: S608 - a condition of our own
    ),
    Check(
        invariant=13,
        remedy=LOOK,
        query="""
        SELECT t.reference, 'operation ' || i.operation_id || ' calls '
            || coalesce('its step ' || s.name, 'it') || ' fixed, but that is '
            || coalesce(s.state, t.state)
        FROM audit_task t
        JOIN orchestration_operationitem i ON i.task_id = t.id
        JOIN orchestration_operation o ON o.id = i.operation_id
        LEFT JOIN audit_step s ON s.id = i.step_id
        WHERE i.state = 'fixed'
          AND (o.act IN ('resubmit', 'by_hand') AND s.state NOT IN ('processed', 'skipped')
            OR o.act = 'by_hand' AND i.change IS NULL AND NOT s.by_hand
            OR o.act = 'undo' AND t.state <> 'undone' AND NOT EXISTS (
                SELECT FROM audit_event e  -- whose undo goes on
                WHERE e.task_id = t.id AND e.kind = 'late' AND e.at > i.ended_at))
        """,
    ),
    Check(
        invariant=13,
        remedy="Abort the operation, and look at the task itself.",
        query="""
        SELECT t.reference, 'operation ' || i.operation_id || ' waits for step ' || s.name
            || ', which is in error'
        FROM audit_task t
        JOIN orchestration_operationitem i ON i.task_id = t.id
        JOIN audit_step s ON s.id = i.step_id
        WHERE i.state = 'sent' AND s.state = 'error'
        """,
    ),
    Check(
        invariant=13,
        scope=Scope.ALL,
        remedy="Ask who began it; review what it did: no other person has.",
        query="""
        SELECT 'operation ' || id, 'began although ' || approval || ', and no other person approved it'
        FROM orchestration_operation
        WHERE started_at IS NOT NULL AND approval <> '' AND (approved_by IN ('', actor)
            OR approved_by_user = actor_user)
        """,
    ),
)
