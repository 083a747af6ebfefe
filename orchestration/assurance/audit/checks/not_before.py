"""Invariants 1, 6 and 12: a step that waits for its time begins then, not earlier and not much later."""

from .... import conf
from ....applications.audits import Check
from ..check import clock_repeated
from ..past import is_past

# The time before which step `s` of task `t` does not begin, where that is declared as it is, and not by a
# template: so long after what it comes after, or a time as Postgres reads it without doubt.
BEGINS = r"""CASE jsonb_typeof(s.flow->'not_before')
    WHEN 'number' THEN coalesce(max(p.ended_at), t.created_at)
        + (s.flow->>'not_before')::float8 * interval '1 second'
    WHEN 'string' THEN CASE
        WHEN s.flow->>'not_before' ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d$'
        THEN (s.flow->>'not_before')::timestamptz END END"""

NOT_BEFORE = (
    Check(
        invariant=1,
        remedy="Undo the task, or submit it anew: nothing would have the step begin.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' waits for its time, and nothing says until when'
        FROM audit_step s LEFT JOIN orchestration_wait w ON w.step_id = s.id
        WHERE s.state = 'waiting' AND s.pending_since IS NOT NULL AND w.due_at IS NULL
        """,
    ),
    Check(
        invariant=1,
        remedy="See that a supervisor leads: it has steps begin as their time comes.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' waits for its time, which came at '
            || to_char(w.due_at, 'YYYY-MM-DD HH24:MI:SS')
        FROM audit_step s JOIN orchestration_wait w ON w.step_id = s.id
        WHERE s.state = 'waiting' AND {is_past("w.due_at", "lag")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=6,
        remedy="See whether what was done too early may stand; if not, undo it.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' was sent out before its time, '
            || to_char(b.begins, 'YYYY-MM-DD HH24:MI:SS')
        FROM audit_step s JOIN orchestration_task t ON t.id = s.task
        JOIN audit_attempt f ON f.step_id = s.id AND f.number = 1
        CROSS JOIN LATERAL (SELECT {BEGINS} AS begins FROM audit_step p
            WHERE p.task = s.task AND p.direction = 'do' AND p.name = ANY(s.after)) AS b
        WHERE s.direction = 'do' AND s.flow ? 'not_before'
          AND f.dispatched_at < b.begins - interval '{conf.CLOCK_BACK_S} seconds'
          AND NOT {clock_repeated("f.dispatched_at")}
        """,  # noqa: S608 - conditions of our own
    ),
    Check(
        invariant=12,
        remedy="Have a developer remove the row: its step has begun; look for what wrote past the guards.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' is ' || s.state || ', but waits for its time still'
        FROM audit_step s JOIN orchestration_wait w ON w.step_id = s.id
        WHERE s.state <> 'waiting' AND w.awaited_at IS NULL AND w.due_at IS NOT NULL
        """,
    ),
)
