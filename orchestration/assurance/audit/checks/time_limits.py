"""Invariant 1: what waits for a time, an undo or an agent waits for no longer than anything allows."""

from ....applications.audits import Check
from ..past import is_past

# Longest times that any policy allows, by the constraints of its table, and a day of slack for clocks that
# were set. A policy may have been changed since a time was written, so its present values prove nothing.
NOW = "(SELECT clock_timestamp())"
SLACK = "interval '1 day'"
LONGEST_ATTEMPT = "interval '1 day'"
LONGEST_WAIT = "interval '1 day'"  # between tries, or for an undo that was requested
LONGEST_EXTENDED_WAIT = "interval '8 days'"  # a week, and a tenth of it at random
# What a person or the input set is as long as it is: the time of a first attempt, the wait of a resubmit.
WAITS_BY_ORDER = """(s.attempt = 0 AND s.direction = 'do' AND s.after = '{}' OR EXISTS (
    SELECT FROM audit_event e
    WHERE e.step_id = s.id AND e.kind = 'resubmitted' AND e.attempt = s.attempt))"""

TIME_LIMITS = (
    Check(
        invariant=1,
        remedy="Undo the task, or have a developer set the time to now: then it is tried again.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' waits for a retry until '
            || to_char(s.run_after, 'YYYY-MM-DD HH24:MI:SS') || ', which is longer than any policy allows'
        FROM audit_step s
        WHERE s.state = 'pending' AND NOT {WAITS_BY_ORDER}
          AND s.run_after > {NOW} + {SLACK} + greatest(
            CASE WHEN s.extended_waits > 0 THEN {LONGEST_EXTENDED_WAIT} ELSE {LONGEST_WAIT} END,
            s.patient_wait * 1.1 * interval '1 second')
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="Resubmit or undo it now.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' is to be mended by '
            || to_char(s.resolve_by, 'YYYY-MM-DD HH24:MI:SS') || ', which is later than any policy allows'
        FROM audit_step s LEFT JOIN orchestration_policy p ON p.agent = s.agent
        LEFT JOIN orchestration_steppolicy o ON o.workflow = s.workflow AND o.step = s.name
        WHERE s.resolve_by > {NOW} + {SLACK}
          AND s.resolve_by > {NOW} + {SLACK} + interval '1 second' * greatest(p.resolve_within, (
            SELECT max(h.resolve_within) FROM orchestration_historicalpolicy h
            WHERE h.agent = s.agent), o.resolve_within, (
            SELECT max(h.resolve_within) FROM orchestration_historicalsteppolicy h
            WHERE h.workflow = s.workflow AND h.step = s.name), 1800)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="Have a developer set its deadline to now: then the supervisor has it tried again.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' has a deadline at '
            || to_char(s.complete_by, 'YYYY-MM-DD HH24:MI:SS') || ', which is later than any policy allows'
        FROM audit_step s
        WHERE s.complete_by > {NOW} + {SLACK} + {LONGEST_ATTEMPT}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="Undo the task by hand.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' waits for the undo of its task until '
            || to_char(s.run_after, 'YYYY-MM-DD HH24:MI:SS') || ', but no scheduler is asked to begin it'
        FROM audit_step s JOIN audit_task t ON t.id = s.task
        WHERE s.state = 'pending' AND s.run_after IS NOT NULL AND NOT t.undoing
          AND EXISTS (SELECT FROM audit_event e
            WHERE e.step_id = s.id AND e.kind = 'undo_asked' AND e.attempt = s.attempt
              AND NOT EXISTS (SELECT FROM audit_event l WHERE l.step_id = s.id AND l.id > e.id))
          AND NOT EXISTS (SELECT FROM orchestration_undorequest r WHERE r.task_id = s.task)
        """,
    ),
    Check(
        invariant=1,
        remedy="See that schedulers run: they begin what the supervisor asks for.",
        query=f"""
        SELECT t.reference, 'its undo was requested at '
            || to_char(r.requested_at, 'YYYY-MM-DD HH24:MI:SS') || ', and has not begun'
        FROM audit_task t JOIN orchestration_undorequest r ON r.task_id = t.id
        WHERE {is_past("r.requested_at", "undo_stuck")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        remedy="Install the application that has this agent, or undo the task.",
        # for an hour, a release may know it that is not the audit's
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' waits for the agent ' || s.agent
            || ', which does not exist'
        FROM audit_step s
        WHERE s.state = 'pending' AND s.run_after IS NULL AND s.held_by_id IS NULL
          AND s.agent <> '' AND NOT s.agent = ANY(%(agents)s::text[])
          AND {is_past("s.pending_since", "deployed")}
        """,  # noqa: S608 - no input in it
    ),
)
