"""For how long holds have delayed steps, and waits for results: expressions of SQL about a step `s`."""

# The holds that can have delayed step `s` since it became pending: those of its task, along
# hold_by_task, and wider ones, along hold_wide.
HOLDS_OF_TASK = """
SELECT since, until FROM orchestration_hold
WHERE task_id = s.task_id AND (until IS NULL OR until > s.pending_since)
"""
WIDER_HOLDS = """
SELECT h.since, h.until
FROM (VALUES ('all', ''), ('agent', s.agent), ('step', '')) AS wide (scope, agent)
CROSS JOIN LATERAL (
    SELECT * FROM orchestration_hold
    WHERE scope <> 'task' AND scope = wide.scope AND agent = wide.agent AND until IS NULL
    UNION ALL
    SELECT * FROM orchestration_hold
    WHERE scope <> 'task' AND scope = wide.scope AND agent = wide.agent AND until > s.pending_since
) AS h
WHERE h.scope <> 'step' OR h.step = s.name AND h.workflow = (
    SELECT workflow FROM orchestration_task t WHERE t.id = s.task_id)
"""

# Seconds for which holds delayed step `s` since it became pending. Overlapping holds count once, and none
# further than to this moment (`least` passes over NULL), as more seconds than a time can have fail later. A
# step's parallel siblings may add their own: then the task gets more time.
SECONDS = """coalesce((
    SELECT extract(epoch FROM sum(upper(r) - lower(r)))::float8 FROM unnest((
        SELECT range_agg(tstzrange(greatest(h.since, s.pending_since),
            greatest(s.pending_since, h.since, least(h.until, clock_timestamp()))))
        FROM ({holds}) AS h)) AS r WHERE NOT isempty(r)), 0)"""
HELD_SECONDS_BY_TASK = SECONDS.format(holds=HOLDS_OF_TASK)
HELD_SECONDS = SECONDS.format(holds=f"{HOLDS_OF_TASK} UNION ALL {WIDER_HOLDS}")

# Seconds for which step `s` has awaited its result, and for which it may await it in all.
AWAITED_SINCE = "coalesce(s.ended_at, s.pending_since)"
AWAITED_SECONDS = f"""CASE s.process_state WHEN 'awaiting'
    THEN greatest(0, extract(epoch FROM clock_timestamp() - {AWAITED_SINCE}))::float8 ELSE 0 END"""
SECONDS_TO_AWAIT = f"""coalesce((
    SELECT greatest(0, extract(epoch FROM greatest(w.ends_by, clock_timestamp()) - {AWAITED_SINCE}))::float8
    FROM orchestration_wait w WHERE w.step_id = s.id), 0)"""  # noqa: S608 - a constant of our own
