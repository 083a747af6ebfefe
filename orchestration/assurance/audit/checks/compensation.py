"""Invariant 7: each undo matches a step that was done, in reverse order."""

from ....applications.audits import Check
from ..check import ENDED_LATER, ended_after

COMPENSATION = (
    Check(
        invariant=7,
        remedy="Ask the partner what the undo took back, and have it done again if it was too much.",
        query="""
        SELECT u.reference, 'step ' || u.name || ' was undone, but it '
            || CASE WHEN d.id IS NULL THEN 'does not exist' ELSE 'was never done' END
        FROM audit_step u LEFT JOIN audit_step d
            ON d.task = u.task AND d.name = u.name AND d.direction = 'do'
        WHERE u.direction = 'undo' AND (d.id IS NULL OR (u.attempt > 0
            AND ((d.attempt = 0 AND NOT d.by_hand)
                 OR (d.state = 'cancelled' AND d.outcome NOT IN ('absent', 'later')
                    AND NOT coalesce(d.flow ? 'workflow', false)  -- what its children did is undone
                    AND NOT EXISTS (SELECT FROM audit_event e
                        WHERE e.task_id = u.task AND e.step_id = d.id AND e.kind = 'late')))))
        """,
    ),
    Check(
        invariant=7,
        remedy="Find out who began the undo; the task's history does not say. Then ask for it.",
        query="""
        SELECT reference, 'has undo steps, but no undo was requested'
        FROM audit_step s
        WHERE direction = 'undo' AND EXISTS (
            SELECT 1 FROM audit_task t WHERE t.id = s.task AND NOT t.undoing)
          AND NOT EXISTS (SELECT FROM audit_event e
              WHERE e.task_id = s.task AND e.kind = 'undo')  -- of a part
        GROUP BY task, reference
        """,
    ),
    Check(
        invariant=7,
        remedy="See at the partner whether what came later is undone, too; if not, undo that by hand.",
        query=f"""
        SELECT u.reference, 'the undo of ' || u.name || ' was sent out before that of '
            || a.name || ' had ended'
        FROM audit_step u
        CROSS JOIN unnest(u.after) AS a (name)
        LEFT JOIN audit_step p
            ON p.task = u.task AND p.direction = 'undo' AND p.name = a.name
        LEFT JOIN audit_attempt f ON f.step_id = u.id AND f.number = 1
        WHERE u.direction = 'undo' AND u.attempt > 0
          AND (p.id IS NULL OR p.state NOT IN ('processed', 'cancelled')
               OR {ended_after("p.ended_at", "coalesce(f.dispatched_at, u.dispatched_at)", ENDED_LATER)})
        """,  # noqa: S608 - a condition of our own
    ),
    Check(
        invariant=7,
        remedy="See at the partner whether it still stands, and take it back by hand.",
        query="""
        SELECT d.reference, 'is undone, but the undo of ' || d.name || ' '
            || coalesce('is ' || u.state, 'was never planned')
        FROM audit_step d LEFT JOIN audit_step u
            ON u.task = d.task AND u.name = d.name AND u.direction = 'undo'
        WHERE d.direction = 'do' AND d.task_state = 'undone' AND d.undo_action <> ''
          AND d.state = 'processed'
          AND (u.id IS NULL OR u.state <> 'processed')
        """,
    ),
    Check(
        invariant=7,
        remedy="Ask the partner by the step's key whether it was done, and take it back by hand if so.",
        # Resolved by a later answer of the service, or by an event: what settles a step writes one, as does
        # the report that what the service accepted later was refused.
        query="""
        SELECT d.reference, 'step ' || d.name || ' (' || d.direction || ') is cancelled, but '
            || coalesce('its attempt ' || u.number || ' ended ' || u.outcome, 'it is in doubt')
            || ', and nothing shows that it had no effect'
        FROM audit_step d
        LEFT JOIN LATERAL (
            SELECT a.number, a.outcome FROM audit_attempt a
            WHERE a.step_id = d.id AND a.generation = d.generation
              AND a.outcome IN ('expired', 'unknown')
            ORDER BY a.number DESC LIMIT 1) u ON true
        WHERE d.state = 'cancelled' AND d.outcome <> 'later'
          AND (d.doubtful OR u.number IS NOT NULL AND NOT EXISTS (
            SELECT FROM audit_attempt a WHERE a.step_id = d.id AND a.number > u.number
              AND a.outcome IN ('absent', 'rejected')))
          AND NOT EXISTS (SELECT FROM audit_event e WHERE e.step_id = d.id
              AND (e.kind = 'settled' OR e.kind = 'reported' AND e.reason <> 'done')
              AND e.attempt >= coalesce(u.number, 0))
        """,
    ),
)
