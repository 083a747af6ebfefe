"""Invariants 5, 6 and 7: what was skipped had no effect, for a reason; what was done by hand says so."""

from ....applications.audits import Check
from ....decisions.flow import ANY, MISTAKES, PASS

CODES = ", ".join(f"'{code}'" for code in sorted(MISTAKES))
# The condition that a step's workflow passes over a refusal with its last code.
PASSES = f"""coalesce(s.flow->'refused'->>s.error_code,
    CASE WHEN s.error_code NOT IN ({CODES}) THEN s.flow->'refused'->>'{ANY}' END) = '{PASS}'"""

SKIPPED = (
    Check(
        invariant=5,
        ledgers=True,
        remedy="Its task goes on as if it was not done: have the partner take it back, or undo the task.",
        # an effect that showed by a reply has an event, and an alert for a person
        query="""
        SELECT s.reference, e.agent || ' did step ' || s.name || ' (' || e.kind
            || '), which was skipped'
        FROM audit_effect e
        JOIN audit_step s ON s.task = e.task AND s.name = e.step AND s.direction = e.direction
        WHERE e.kind <> 'none' AND s.state = 'skipped' AND s.attempt > 0
          AND NOT EXISTS (SELECT FROM audit_event n WHERE n.step_id = s.id AND n.kind = 'late')
        """,
    ),
    Check(
        invariant=6,
        remedy="See what wrote past the guards, and do the step by hand if its task needs it.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' is skipped, but '
            || CASE WHEN s.attempt > 0 AND s.outcome = 'rejected'
                    THEN 'its refusal (' || s.error_code || ') is not passed over'
                WHEN s.attempt > 0 THEN 'its attempt ' || s.attempt || ' ended ' || s.outcome
                ELSE 'it has no condition' END
        FROM audit_step s
        LEFT JOIN audit_attempt a ON a.step_id = s.id AND a.number = s.attempt
        WHERE s.state = 'skipped' AND s.direction = 'do' AND NOT coalesce(CASE s.attempt
            WHEN 0 THEN CASE s.error_code WHEN '' THEN s.flow ? 'when'
                WHEN 'late' THEN s.flow->>'late' = '{PASS}' ELSE {PASSES} END
            ELSE s.outcome = 'rejected' AND {PASSES} AND (a.outcome = 'later'  -- and reported since
                OR a.outcome = 'rejected' AND a.error_code = s.error_code) END, false)
        """,  # noqa: S608 - a condition of our own
    ),
    Check(
        invariant=7,
        remedy="See at the partner whether the effect still stands, and take it back by hand if so.",
        query="""
        SELECT reference, 'the undo of ' || name || ' is skipped: undo steps have no condition'
        FROM audit_step WHERE direction = 'undo' AND state = 'skipped'
        """,
    ),
    Check(
        invariant=7,
        remedy="Ask the partner what the undo took back, and have it done again if it was too much.",
        query="""
        SELECT u.reference, 'an undo of ' || u.name || ' is planned, which was skipped'
        FROM audit_step u JOIN audit_step d
            ON d.task = u.task AND d.name = u.name AND d.direction = 'do'
        WHERE u.direction = 'undo' AND d.state = 'skipped'
        """,
    ),
)

BY_HAND = (
    Check(
        invariant=5,
        remedy="Ask who is named in the history, or the partner, whether it was done by hand.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || ') is ' || s.state || ', '
            || CASE WHEN s.by_hand THEN 'as done by hand, but its history has no such entry'
                ELSE 'but its history says that it was done by hand' END
        FROM audit_step s
        WHERE (s.by_hand AND s.state = 'processed') <> EXISTS (SELECT FROM audit_event e
            WHERE e.step_id = s.id AND e.kind = 'by_hand')
           OR s.by_hand AND s.state <> 'processed'
        """,
    ),
)
