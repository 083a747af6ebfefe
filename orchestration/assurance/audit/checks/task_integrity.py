"""Invariants 1 and 2: no task is lost or duplicated."""

from ....applications.audits import Check, Scope
from ..past import is_past

# What a task's state must be, given its steps: the same rule as `progression.task_state`.
SHOULD_BE = """CASE
    WHEN t.failed THEN 'error'
    WHEN t.undoing AND t.ended THEN 'undone'
    WHEN t.undoing THEN 'undoing'
    WHEN t.ended THEN 'processed'
    WHEN t.state = 'pending' AND t.fresh THEN 'pending'
    ELSE 'processing' END"""

LOSS = (
    Check(
        invariant=1,
        remedy="Look at its steps and at the partners by its reference, and have a developer set the "
        "task's state to what they say; submit it anew if it has no steps.",
        query=f"""
        SELECT t.reference, CASE t.steps WHEN 0 THEN 'has no steps'
            ELSE 'is ' || t.state || ', but its steps make it ' || {SHOULD_BE} END
        FROM audit_task t
        WHERE t.steps = 0
           OR (t.state <> {SHOULD_BE} AND NOT (t.state = 'error' AND NOT t.failed))
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="Undo it, or have a developer make its next step pending.",
        query=f"""
        SELECT t.reference, 'is ' || t.state || ', but nothing of it is pending or processing'
        FROM audit_task t
        WHERE t.steps > 0 AND t.state IN ('pending', 'processing', 'undoing')
          AND NOT t.moving AND t.state = {SHOULD_BE}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="Look at the partner whether the step was done, and have a developer set its state.",
        query="""
        SELECT s.reference, 'is processed, but step ' || s.name || ' is cancelled, and no undo names it'
        FROM audit_step s
        WHERE s.task_state = 'processed' AND s.direction = 'do' AND s.state = 'cancelled'
          AND NOT EXISTS (SELECT FROM audit_event e
              WHERE e.task_id = s.task AND e.kind = 'undo' AND e.detail->'steps' ? s.name)
        """,
    ),
    Check(
        invariant=1,
        remedy="Resubmit another step of it, which looks at the waiting ones again; or undo it.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' still waits, though all it comes after is done'
        FROM audit_step s JOIN audit_task t ON t.id = s.task
        WHERE s.state = 'waiting' AND s.direction = 'do' AND t.moving AND NOT t.undoing
          AND s.pending_since IS NULL
          AND NOT EXISTS (
            SELECT 1 FROM unnest(s.after) AS a (name)
            LEFT JOIN audit_step p
                ON p.task = s.task AND p.direction = 'do' AND p.name = a.name
            WHERE p.state IS DISTINCT FROM 'processed'
              AND p.state IS DISTINCT FROM 'skipped')
        """,
    ),
    Check(
        invariant=1,
        remedy="See that a supervisor leads: it finds such steps and has them tried again.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' is processing, but its deadline passed at '
            || to_char(s.complete_by, 'YYYY-MM-DD HH24:MI:SS')
        FROM audit_step s
        WHERE s.state = 'processing'
          AND (s.complete_by IS NULL
               OR {is_past("s.complete_by", "lag")})
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="See that a supervisor leads: it has such tasks undone.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' should have been mended by '
            || to_char(s.resolve_by, 'YYYY-MM-DD HH24:MI:SS') || ', and its task was not undone'
        FROM audit_step s
        WHERE {is_past("s.resolve_by", "lag")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="See that a supervisor leads: it ends waits that are over.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' waits for a retry that was due at '
            || to_char(s.run_after, 'YYYY-MM-DD HH24:MI:SS')
        FROM audit_step s
        WHERE s.state = 'pending' AND s.held_by_id IS NULL
          AND {is_past("s.run_after", "lag")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="Record its result, or undo the task: nothing would end its wait.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' awaits its result, and nothing says until when'
        FROM audit_step s LEFT JOIN orchestration_wait w ON w.step_id = s.id
        WHERE s.state = 'awaiting' AND w.awaited_at IS NULL
          AND NOT coalesce(s.flow ? 'workflow', false) AND NOT (s.direction = 'undo' AND s.agent = '')
        """,
    ),
    Check(
        invariant=1,
        remedy="See that a supervisor leads: it ends waits that are over.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' awaits its result, which was due at '
            || to_char(w.due_at, 'YYYY-MM-DD HH24:MI:SS')
        FROM audit_step s JOIN orchestration_wait w ON w.step_id = s.id
        WHERE s.state = 'awaiting' AND {is_past("w.due_at", "lag")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="See that schedulers run: they record what was reported early.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' awaits what has been reported'
        FROM audit_step s JOIN orchestration_wait w ON w.step_id = s.id
        WHERE s.state = 'awaiting' AND w.report IS NOT NULL
          AND {is_past("w.awaited_at", "lag")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="Hold the same thing again and release it.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' is held, but '
            || CASE WHEN h.id IS NULL THEN 'by nothing' ELSE 'its hold was released' END
        FROM audit_step s LEFT JOIN orchestration_hold h ON h.id = s.held_by_id
        WHERE s.state = 'pending' AND s.held_by_id IS NOT NULL
          AND (h.id IS NULL OR {is_past("h.until", "lag")})
        """,  # noqa: S608 - no input in it
    ),
)

TWINS = (
    Check(
        invariant=2,
        remedy="Undo all of them but the first.",
        query="""
        SELECT t.reference, 'there are several tasks of ' || t.workflow || ' for it'
        FROM audit_task t WHERE EXISTS (SELECT FROM orchestration_task o
            WHERE o.reference = t.reference AND o.workflow = t.workflow AND o.id <> t.id)
        """,
    ),
)

# Steps and history are written often, and removed with their task only: the database does not compare
# them with the task or step at each write, which would lock that row once more.
UNOWNED = (
    Check(
        invariant=2,
        scope=Scope.RANGE,
        remedy="Have a developer find what removed it: these rows are its only trace.",
        query="""
        SELECT 'task ' || s.task_id, 'a step has no task: ' || s.name
        FROM orchestration_step s
        WHERE s.task_id > %(first)s AND s.task_id <= %(last)s
            AND NOT EXISTS (SELECT FROM orchestration_task t WHERE t.id = s.task_id)
        UNION ALL
        SELECT 'step ' || a.step_id, 'an attempt has no step: number ' || a.number
        FROM orchestration_attempt a
        WHERE a.step_id > %(first_step)s AND a.step_id <= %(last_step)s
            AND NOT EXISTS (SELECT FROM orchestration_step s WHERE s.id = a.step_id)
        UNION ALL
        SELECT 'task ' || m.task_id, 'a status message has no task'
        FROM orchestration_statusmessage m
        WHERE m.task_id > %(first)s AND m.task_id <= %(last)s
            AND NOT EXISTS (SELECT FROM orchestration_task t WHERE t.id = m.task_id)
        """,
    ),
)
