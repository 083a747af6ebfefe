"""Invariant 11: what applications are told is what is so."""

from .violation import Check

MEND = "Tell the application the task's real state; look for what wrote past the guards."

TOLD = (
    Check(
        invariant=11,
        mend=MEND,
        query="""
        SELECT t.reference, 'status message ' || m.number || ' lies there, but only ' || t.statuses
            || ' were ever written'
        FROM orchestration_statusmessage m JOIN audit_task t ON t.id = m.task_id
        WHERE m.number > t.statuses OR m.number < 1
        """,
    ),
    Check(
        invariant=11,
        mend=MEND,
        query="""
        SELECT t.reference, 'is ' || t.state || ', but its last status message says ' || m.kind
        FROM orchestration_statusmessage m JOIN audit_task t ON t.id = m.task_id
        WHERE m.number = t.statuses AND t.state <> ALL (CASE m.kind
            WHEN 'received' THEN ARRAY['pending', 'processing']
            WHEN 'resumed' THEN ARRAY['processing']
            WHEN 'completed' THEN ARRAY['processed']
            WHEN 'failed' THEN ARRAY['error']
            WHEN 'action_needed' THEN ARRAY['error']
            WHEN 'step' THEN ARRAY['processing', 'undoing', 'error']
            WHEN 'undoing' THEN ARRAY['undoing']
            WHEN 'undone' THEN ARRAY['undone']
            ELSE ARRAY[]::text[] END)
        """,
    ),
    Check(
        invariant=11,
        mend=MEND,
        query="""
        SELECT reference, 'is ' || state || ', but only ' || statuses
            || ' status messages were ever written'
        FROM audit_task
        WHERE reply_to <> '' AND statuses < CASE state
            WHEN 'pending' THEN 1 WHEN 'processing' THEN 1 WHEN 'undone' THEN 3 ELSE 2 END
        """,
    ),
)
