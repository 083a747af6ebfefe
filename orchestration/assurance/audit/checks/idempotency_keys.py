"""Invariant 10: idempotency keys change only when nothing was done under the old one."""

from ....applications.audits import Check, Scope

REMEDY = (
    "Ask the partner what was done under each key of the step, and have it take back what is too "
    "much."
)

# A new key is correct once nothing was done under the old one: the service rejected the call, has no
# record of it, or a person has found that out.
NEW_KEY = """(a.outcome IN ('rejected', 'absent') OR EXISTS (
    SELECT 1 FROM audit_event e
    WHERE e.step_id = s.id AND e.attempt = coalesce(a.number, 0) AND (e.kind = 'settled'
        OR (e.kind = 'resubmitted' AND (e.detail->>'new_key')::boolean))))"""

# After a restore a step takes on the key under which its service did it meanwhile.
RECONCILED = """EXISTS (SELECT 1 FROM audit_event e
    WHERE e.step_id = s.id AND e.attempt = coalesce(a.number, 0) AND e.kind = 'late'
        AND (e.detail->>'generation')::int = {}.generation)"""

KEYS = (
    Check(
        invariant=10,
        remedy=REMEDY,
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || '): its key changed from '
            || 'generation ' || a.generation || ' to ' || b.generation || ' after attempt '
            || a.number || ', which ended ' || a.outcome
        FROM audit_attempt a
        JOIN audit_attempt b ON b.step_id = a.step_id AND b.number = a.number + 1
        JOIN audit_step s ON s.id = a.step_id
        WHERE b.generation <> a.generation
          AND NOT (b.generation = a.generation + 1 AND {NEW_KEY})
          AND NOT {RECONCILED.format("b")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=10,
        remedy=REMEDY,
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || ') is at generation '
            || s.generation || ', but its last attempt was at ' || coalesce(a.generation, 1)
        FROM audit_step s
        LEFT JOIN audit_attempt a ON a.step_id = s.id
            AND a.number = s.attempt - (s.locked_by IS NOT NULL)::int
        WHERE s.generation <> coalesce(a.generation, 1)
          AND (s.attempt - (s.locked_by IS NOT NULL)::int = 0 OR a.id IS NOT NULL)
          AND NOT (s.generation = coalesce(a.generation, 1) + 1 AND {NEW_KEY})
          AND NOT {RECONCILED.format("s")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=10,
        remedy=REMEDY,
        query="""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || '): ' || e.actor
            || ' changed its input after attempt ' || e.attempt || ', but its key was kept'
        FROM audit_event e JOIN audit_step s ON s.id = e.step_id
        WHERE e.kind = 'resubmitted' AND e.attempt > 0
          AND e.detail->'after' <> e.detail->'before'
          AND NOT coalesce((e.detail->>'new_key')::boolean, false)
        """,
    ),
    Check(
        invariant=10,
        scope=Scope.ALL,
        ledgers=True,
        remedy=REMEDY,
        query="""
        SELECT coalesce((SELECT t.reference FROM audit_data t WHERE t.task = min(e.task::text)::uuid),
                min(e.reference), e.key),
            'the key ' || e.key || ' stands for ' || count(*) || ' different calls'
        FROM audit_ledger e
        WHERE e.key IS NOT NULL GROUP BY e.key HAVING count(*) > 1
        """,
    ),
    Check(
        invariant=10,
        ledgers=True,
        remedy=REMEDY,
        query="""
        SELECT t.reference, e.agent || ' was called under the key ' || e.key || ', which '
            || CASE WHEN s.id IS NULL THEN 'is of no step' ELSE 'the step never had' END
        FROM audit_effect e JOIN audit_task t ON t.id = e.task
        LEFT JOIN audit_step s
            ON s.task = e.task AND s.name = e.step AND s.direction = e.direction
        WHERE s.id IS NULL OR e.generation > s.generation OR e.generation < 1
        """,
    ),
)
