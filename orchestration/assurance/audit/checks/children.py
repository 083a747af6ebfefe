"""Invariants 1, 2, 5 and 7: a step ends as its children do, and each child has a step, and its undo."""

from ....applications.audits import Check
from ..past import is_past

# The children of step `s`, along task_of_parent.
OF_STEP = "FROM orchestration_task c WHERE c.parent_id = s.id"
EACH = f"CROSS JOIN LATERAL (SELECT c.* {OF_STEP} OFFSET 0) c"
MAKES = "s.direction = 'do' AND coalesce(s.flow ? 'workflow', false)"

CHILDREN = (
    Check(
        invariant=1,
        remedy="See that schedulers run: they look at the children of steps.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' awaits its children, which have all ended'
        FROM audit_step s CROSS JOIN LATERAL (
            SELECT max(c.ended_at) AS at, bool_and(c.ended_at IS NOT NULL) AS ended {OF_STEP}) c
        WHERE {MAKES} AND s.state = 'awaiting'
          AND coalesce(c.ended, true) AND {is_past("coalesce(c.at, s.dispatched_at)", "lag")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="See that schedulers run: they undo the children of steps.",
        query=f"""
        SELECT u.reference, 'the undo of ' || u.name || ' awaits its children, and '
            || c.reference || ' is not being undone'
        FROM audit_step u JOIN audit_step s ON s.task = u.task AND s.name = u.name
        {EACH}
        WHERE {MAKES} AND u.direction = 'undo' AND u.state = 'awaiting' AND c.undo_at IS NULL
          AND {is_past("u.dispatched_at", "lag")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=5,
        remedy="Undo the child, unless its step needs it: then see what wrote past the guards.",
        # One that cannot be undone goes on although others were enough; its history says so.
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' is processed, but its child ' || c.reference
            || ' has not ended'
        FROM audit_step s {EACH}
        WHERE {MAKES} AND s.state = 'processed' AND NOT s.by_hand
          AND c.ended_at IS NULL AND c.undo_at IS NULL AND {is_past("s.ended_at", "lag")}
          AND NOT EXISTS (SELECT FROM orchestration_event e WHERE e.task_id = c.id AND e.kind = 'no_undo')
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=2,
        remedy="Have a developer find what removed the step: undo the child, which nothing else would.",
        query="""
        SELECT t.reference, 'is a child of step ' || t.parent_id || ', which '
            || CASE WHEN s.id IS NULL THEN 'does not exist' ELSE 'has no children' END
        FROM audit_task a JOIN orchestration_task t ON t.id = a.id
        LEFT JOIN orchestration_step s ON s.id = t.parent_id
        WHERE t.parent_id IS NOT NULL AND NOT coalesce(s.flow ? 'workflow', false)
        """,
    ),
    Check(
        invariant=2,
        remedy="Undo all of them but the first.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' has ' || c.count || ' children for item ' || c.position
        FROM audit_step s CROSS JOIN LATERAL (
            SELECT c.position, count(*) AS count {OF_STEP} AND c.undo_at IS NULL
            GROUP BY c.position HAVING count(*) > 1) c
        WHERE {MAKES}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=7,
        remedy="Undo the child.",
        query=f"""
        SELECT u.reference, 'step ' || u.name || ' was undone, but its child ' || c.reference
            || ' is ' || c.state
        FROM audit_step u JOIN audit_step s ON s.task = u.task AND s.name = u.name
        {EACH}
        WHERE {MAKES} AND u.direction = 'undo' AND u.state = 'processed' AND NOT u.by_hand
          AND c.state <> 'undone' AND {is_past("u.ended_at", "lag")}
        """,  # noqa: S608 - no input in it
    ),
)
