"""When time alone brings something in a run."""

# When time alone brings something, after now: retries, deadlines, ends of waits and holds. Gates say
# themselves when they let more through.
NEXT = """
SELECT min(at) FROM (
    SELECT complete_by AS at FROM orchestration_step WHERE process_state = 'processing'
    UNION ALL SELECT run_after FROM orchestration_step WHERE process_state = 'pending'
    UNION ALL SELECT resolve_by FROM orchestration_step WHERE resolve_by IS NOT NULL
    UNION ALL SELECT retry_at FROM orchestration_submission WHERE refused_at IS NULL
    UNION ALL SELECT retry_at FROM orchestration_taskrequest WHERE done_at IS NULL AND refused_at IS NULL
    UNION ALL SELECT send_after FROM orchestration_statusmessage WHERE refused_at IS NULL
        AND reply_to = ANY(%(receivers)s)
    UNION ALL SELECT retry_at FROM orchestration_deadletter
    UNION ALL SELECT until FROM orchestration_hold
    UNION ALL SELECT due_at FROM orchestration_wait
    UNION ALL SELECT look_at FROM orchestration_wait
    UNION ALL SELECT look_at FROM orchestration_schedule WHERE %(scheduled)s
) AS moments WHERE at > (SELECT clock_timestamp())
"""
