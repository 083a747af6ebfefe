"""Invariant 11: the last status message of a task matches its state."""

from ....applications.audits import Check

REMEDY = "Tell the application the task's real state; look for what wrote past the guards."

# The number of the last message to the application that receives message m.
LAST = "CASE m.reply_to WHEN t.owner_application THEN t.owner_statuses ELSE t.statuses END"

STATUS_MESSAGES = (
    Check(
        invariant=11,
        remedy=REMEDY,
        query=f"""
        SELECT t.reference, 'status message ' || m.number || ' lies there, but only ' || {LAST}
            || ' were ever written'
        FROM orchestration_statusmessage m JOIN audit_task t ON t.id = m.task_id
        WHERE m.number > {LAST} OR m.number < 1
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=11,
        remedy=REMEDY,
        query=f"""
        SELECT t.reference, 'is ' || t.state || ', but its last status message says ' || m.kind
        FROM orchestration_statusmessage m JOIN audit_task t ON t.id = m.task_id
        WHERE m.number = {LAST} AND t.state <> ALL (CASE m.kind
            WHEN 'received' THEN ARRAY['pending', 'processing']
            WHEN 'resumed' THEN ARRAY['processing']
            WHEN 'completed' THEN ARRAY['processed']
            WHEN 'failed' THEN ARRAY['error']
            WHEN 'action_needed' THEN ARRAY['error']
            WHEN 'step' THEN CASE WHEN m.progress IS NULL
                THEN ARRAY['processing', 'undoing', 'error']
                ELSE ARRAY[m.progress->>'state', replace(m.progress->>'state', 'pending', 'processing')]
                END
            WHEN 'refused' THEN ARRAY[t.state]
            WHEN 'reminder' THEN ARRAY['processing', 'undoing', 'error']
            WHEN 'amended' THEN ARRAY['pending', 'processing', 'error']
            WHEN 'undoing_part' THEN ARRAY['pending', 'processing', 'error']
            WHEN 'undoing' THEN ARRAY['undoing']
            WHEN 'undone' THEN ARRAY['undone']
            ELSE ARRAY[]::text[] END)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=11,
        remedy=REMEDY,
        query="""
        SELECT reference, 'is ' || state || ', but only ' || statuses
            || ' status messages were ever written'
        FROM audit_task
        WHERE reply_to <> '' AND statuses < CASE state
            WHEN 'pending' THEN 1 WHEN 'processing' THEN 1 WHEN 'undone'
            -- its owner receives one message about an undo that ends as it begins
            THEN CASE reply_to WHEN owner_application THEN 2 ELSE 3 END ELSE 2 END
        """,
    ),
)
