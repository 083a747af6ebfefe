"""Invariants 5, 6, 8 and 9: each step is done once, in order, fenced, and its failures are counted."""

from ....applications.audits import Check
from ..check import ENDED_LATER, ended_after

ASK_PARTNER = (
    "Ask the partner by the order's reference how often it was done, and have it take back what is "
    "too much; look for what wrote past the fence."
)

ONCE = (
    Check(
        invariant=5,
        remedy=ASK_PARTNER,
        query="""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || ') was recorded done '
            || d.times || ' times'
        FROM (SELECT step_id, count(*) AS times FROM audit_attempt
              WHERE outcome = 'done' GROUP BY step_id HAVING count(*) > 1) d
        JOIN audit_step s ON s.id = d.step_id
        """,
    ),
    Check(
        invariant=5,
        remedy="It would be done again: hold the task, and have a developer set the step to processed.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || ') was done in attempt '
            || a.number || ', but is ' || s.state
        FROM audit_step s JOIN audit_attempt a ON a.step_id = s.id
        WHERE s.state <> 'processed' AND a.outcome = 'done'
        """,
    ),
    Check(
        invariant=5,
        remedy="Ask the partner whether it was done; if not, undo the task or do the step by hand.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction
            || ') is processed, but no attempt or report says that it was done'
        FROM audit_step s
        WHERE s.state = 'processed' AND NOT s.by_hand AND NOT EXISTS (
            SELECT 1 FROM audit_attempt a WHERE a.step_id = s.id AND a.outcome = 'done')
          AND NOT EXISTS (
            SELECT 1 FROM audit_event e WHERE e.step_id = s.id AND e.kind = 'reported')
        """,
    ),
    Check(
        invariant=5,
        remedy="Ask the partner for the outcome; then have a developer enter that as its result.",
        query="""
        SELECT reference, 'step ' || name || ' (' || direction || ') is processed, but has no result'
        FROM audit_step WHERE state = 'processed' AND unanswered
        """,
    ),
    Check(
        invariant=5,
        remedy=ASK_PARTNER,
        query="""
        SELECT reference, 'step ' || name || ' (' || direction || ') is there ' || count(*)
            || ' times'
        FROM audit_step GROUP BY task, reference, name, direction HAVING count(*) > 1
        """,
    ),
    Check(
        invariant=5,
        ledgers=True,
        remedy=ASK_PARTNER,
        query="""
        SELECT t.reference, e.agent || ' did step ' || e.step || ' (' || e.direction || ') '
            || e.times || ' times, under the keys ' || e.keys
        FROM (SELECT task, step, direction, agent, count(*) AS times,
                string_agg(DISTINCT key, ', ') AS keys
              FROM audit_effect WHERE kind <> 'none' AND task IS NOT NULL
              GROUP BY task, step, direction, agent HAVING count(*) > 1) e
        JOIN audit_task t ON t.id = e.task
        """,
    ),
)

ORDER = (
    Check(
        invariant=6,
        remedy="See whether what was done too early suits what came before it; if not, undo it.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' was sent out before '
            || coalesce(p.name, a.name || ', which does not exist,') || ' was done'
        FROM audit_step s
        CROSS JOIN unnest(s.after) AS a (name)
        LEFT JOIN audit_step p
            ON p.task = s.task AND p.direction = 'do' AND p.name = a.name
        LEFT JOIN audit_attempt f ON f.step_id = s.id AND f.number = 1
        WHERE s.direction = 'do' AND s.attempt > 0
          AND (p.id IS NULL OR p.state NOT IN ('processed', 'skipped')
               OR {ended_after("p.ended_at", "coalesce(f.dispatched_at, s.dispatched_at)", ENDED_LATER)})
        """,  # noqa: S608 - a condition of our own
    ),
    Check(
        invariant=6,
        ledgers=True,
        remedy="Find out who sent that call: the engine did not. Have the partner take it back.",
        query="""
        SELECT s.reference, e.agent || ' did step ' || s.name || ' (' || s.direction || ': '
            || e.kind || '), which was never sent out'
        FROM audit_effect e
        JOIN audit_step s ON s.task = e.task AND s.name = e.step AND s.direction = e.direction
        WHERE e.kind <> 'none' AND s.attempt = 0 AND NOT s.by_hand AND NOT s.in_doubt
        """,
    ),
)

FENCED = (
    Check(
        invariant=8,
        remedy="Ask the partner what was done under the step's key; look for what wrote past the fence.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || ') is at attempt '
            || s.attempt || CASE WHEN s.locked_by IS NULL THEN '' ELSE ' (under way)' END
            || ', but its history has ' || coalesce(h.count, 0) || ', up to number '
            || coalesce(h.last, 0)
        FROM audit_step s
        LEFT JOIN (SELECT step_id, count(*) AS count, max(number) AS last
                   FROM audit_attempt GROUP BY step_id) h ON h.step_id = s.id
        WHERE (coalesce(h.count, 0), coalesce(h.last, 0)) <> (
            s.attempt - (s.locked_by IS NOT NULL)::int, s.attempt - (s.locked_by IS NOT NULL)::int)
        """,
    ),
    Check(
        invariant=8,
        remedy="Ask the partner what was done under the step's key; look for what wrote past the fence.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || '): attempt ' || a.number
            || ' was still written after attempt ' || b.number || ' had begun'
        FROM audit_attempt a
        JOIN audit_attempt b ON b.step_id = a.step_id AND b.number = a.number + 1
        JOIN audit_step s ON s.id = a.step_id
        WHERE {ended_after("a.ended_at", "b.dispatched_at", "b.id < a.id")}
        """,  # noqa: S608 - a condition of our own
    ),
)

# Failures since the last resubmit, extended wait, or error whose task was undone then, minus excused ones,
# minus one that the supervisor has not counted yet.
COUNTED = (
    Check(
        invariant=9,
        remedy="Resubmitting the step begins to count anew; look for what wrote past the guards.",
        query="""
        WITH anew AS (
            SELECT e.step_id, max(e.attempt) AS attempt
            FROM audit_event e
            LEFT JOIN audit_event u ON e.kind = 'error' AND u.task_id = e.task_id
                AND u.kind = 'undo' AND u.id > e.id AND NOT EXISTS (SELECT FROM audit_event h
                    WHERE h.step_id = e.step_id AND h.kind = 'by_hand' AND h.id < u.id)
            WHERE e.step_id IS NOT NULL AND (e.kind IN ('resubmitted', 'waits') OR u.id IS NOT NULL)
            GROUP BY e.step_id
        ), failures AS (
            SELECT a.step_id, count(*) AS count
            FROM audit_attempt a LEFT JOIN anew USING (step_id)
            WHERE a.outcome IN ('transient', 'unknown', 'expired')
              AND a.number > coalesce(anew.attempt, 0)
            GROUP BY a.step_id
        ), excused AS (
            SELECT e.step_id, count(*) AS count
            FROM audit_event e LEFT JOIN anew USING (step_id)
            WHERE e.kind = 'excused' AND e.attempt > coalesce(anew.attempt, 0)
            GROUP BY e.step_id
        ), counted AS (
            SELECT s.*, coalesce(f.count, 0) - coalesce(x.count, 0)
                - (s.state = 'processing' AND s.locked_by IS NULL
                    AND s.outcome IN ('transient', 'unknown', 'expired'))::int AS should
            FROM audit_step s
            LEFT JOIN failures f ON f.step_id = s.id LEFT JOIN excused x ON x.step_id = s.id
            WHERE s.state <> 'cancelled'
        )
        SELECT reference, 'step ' || name || ' (' || direction || ') counts ' || failure_count
            || ' failures, but its history has ' || should
        FROM counted WHERE failure_count <> should
        """,
    ),
)
