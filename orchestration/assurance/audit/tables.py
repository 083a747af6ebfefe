"""The temporary tables that checks read, and how one slice of the tasks is loaded into them.

Of a slice all is copied: so a check costs the same however large the engine's tables are. What is
copied is found by the keys of its task or step.
"""

DROP = """
DROP VIEW IF EXISTS pg_temp.audit_data, pg_temp.audit_submission, pg_temp.audit_request,
    pg_temp.audit_message, pg_temp.audit_lost;
DROP TABLE IF EXISTS pg_temp.audit_changed, pg_temp.audit_slice, pg_temp.audit_task,
    pg_temp.audit_step, pg_temp.audit_attempt, pg_temp.audit_event, pg_temp.audit_ledger,
    pg_temp.audit_effect;
"""

MAKE = (
    DROP
    + """
CREATE TEMPORARY TABLE audit_changed (id uuid PRIMARY KEY);
CREATE TEMPORARY TABLE audit_slice (id uuid);
CREATE TEMPORARY TABLE audit_task (
    id uuid, workflow text, reference text, state text, undoing boolean, reply_to text,
    statuses int, owner_application text, owner_statuses int, ended_at timestamptz, order_id uuid,
    unsent int, quiet boolean,
    steps int, failed boolean, ended boolean, fresh boolean, moving boolean
);
CREATE TEMPORARY TABLE audit_step AS
SELECT s.id, s.task_id AS task, t.reference, t.workflow, t.state AS task_state, s.name,
    s.direction, s.agent, s.process_state AS state, s.after, s.request, s.attempt, s.generation,
    s.failure_count, s.outcome, s.locked_by, s.complete_by, s.run_after, s.resolve_by, s.held_by_id,
    s.dispatched_at, s.ended_at, s.pending_since, s.alert_id, s.incident_id, s.undo_action,
    true AS tried, true AS in_doubt, s.in_doubt AS doubtful, s.result IS NULL AS unanswered,
    s.priority, t.priority AS task_priority, s.extended_waits, 0::float8 AS patient_wait,
    true AS by_hand, s.error_code, s.flow
FROM orchestration_step s, orchestration_task t LIMIT 0;
CREATE TEMPORARY TABLE audit_attempt (LIKE orchestration_attempt);
CREATE TEMPORARY TABLE audit_event (LIKE orchestration_event);
CREATE TEMPORARY TABLE audit_ledger (
    agent text, key text, task uuid, step text, direction text, generation int,
    reference text, kind text, amount bigint, currency text, detail jsonb, result jsonb
);
CREATE TEMPORARY TABLE audit_effect (LIKE audit_ledger);
CREATE INDEX ON audit_task (id);
CREATE INDEX ON audit_step (task, name);
CREATE INDEX ON audit_step (id);
CREATE INDEX ON audit_attempt (step_id, number);
CREATE INDEX ON audit_event (step_id);
CREATE INDEX ON audit_effect (task, step);
CREATE INDEX ON audit_effect (reference);
-- Applications' checks read these instead of the engine's tables. They hold every row, whether its
-- task is in question or not.
CREATE TEMPORARY VIEW audit_data AS
SELECT id AS task, workflow, reference, data FROM orchestration_task;
CREATE TEMPORARY VIEW audit_submission AS
SELECT workflow, reference, refused_at IS NOT NULL AS refused FROM orchestration_submission;
CREATE TEMPORARY VIEW audit_request AS
SELECT request AS id, done_at IS NULL AS pending FROM orchestration_taskrequest;
CREATE TEMPORARY VIEW audit_message AS
SELECT reply_to, workflow, reference, detail FROM orchestration_statusmessage;
-- What a restore lost, its effects settled by `manage.py reconcile`: there is an alert about each.
CREATE TEMPORARY VIEW audit_lost AS
SELECT DISTINCT e.reference FROM orchestration_alert a
JOIN audit_ledger e ON e.task = split_part(a.fingerprint, '/', 2)::uuid
WHERE starts_with(a.fingerprint, 'late_effect/') AND split_part(a.fingerprint, '/', 3) = 'lost'
"""
)
EMPTY = "TRUNCATE audit_slice, audit_task, audit_step, audit_attempt, audit_event, audit_effect"

# What changed since a time, by the indexes task_by_creation, task_by_end, attempt_by_end and event_recent;
# what is under way, by task_by_state; what is to be undone, or should have been, by step_unmended. What is in
# error has an attempt or an event of its time; from then on nothing happens to it by itself, and there may be
# much.
CHANGED = """
INSERT INTO audit_changed
SELECT id FROM orchestration_task WHERE created_at >= %(since)s
UNION SELECT id FROM orchestration_task WHERE ended_at >= %(since)s
UNION SELECT id FROM orchestration_task WHERE state IN ('pending', 'processing', 'undoing')
UNION SELECT task_id FROM orchestration_step WHERE resolve_by < %(cut)s
UNION SELECT task_id FROM orchestration_undorequest
UNION SELECT s.task_id FROM orchestration_attempt a JOIN orchestration_step s ON s.id = a.step_id
    WHERE a.ended_at >= %(since)s
UNION SELECT task_id FROM orchestration_event WHERE at >= %(since)s AND task_id IS NOT NULL
"""
# The id with which a slice of a table ends; none for the last slice.
END = "SELECT id::text FROM {table} WHERE id > %(first)s ORDER BY id OFFSET %(size)s LIMIT 1"
SLICE = """
INSERT INTO audit_slice
SELECT t.id FROM orchestration_task t WHERE t.id > %(first)s AND t.id <= %(last)s
"""
SLICE_OF_CHANGED = """
INSERT INTO audit_slice
SELECT c.id FROM audit_changed c WHERE c.id > %(first)s AND c.id <= %(last)s
"""
# One row after the other by its key: the tables are too large to be read for a slice.
BY_KEY = """SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off"""
AFTER_SLICE = "SET LOCAL enable_seqscan = on"
AS_USUAL = "SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on"
STEPS = """
INSERT INTO audit_step
SELECT s.id, s.task_id, t.reference, t.workflow, t.state, s.name,
    s.direction, s.agent, s.process_state, s.after, s.request, s.attempt, s.generation,
    s.failure_count, s.outcome, s.locked_by, s.complete_by, s.run_after, s.resolve_by, s.held_by_id,
    s.dispatched_at, s.ended_at, s.pending_since, s.alert_id, s.incident_id, s.undo_action, s.attempt > 0,
    s.in_doubt OR s.locked_by IS NOT NULL OR (s.process_state NOT IN ('processed', 'skipped')
        AND (s.outcome IN ('unknown', 'expired') OR s.error_code = 'expired')),
    s.in_doubt, s.result IS NULL, s.priority, t.priority, s.extended_waits,
    (s.patience->>'wait')::float8, s.done_by <> '', s.error_code, s.flow
FROM audit_slice c JOIN orchestration_task t ON t.id = c.id JOIN orchestration_step s ON s.task_id = t.id
"""
ATTEMPTS = """
INSERT INTO audit_attempt
SELECT a.* FROM audit_step s JOIN orchestration_attempt a ON a.step_id = s.id
"""
# Without the line that a person recorded a result: what counts is the report that this was.
EVENTS = """
INSERT INTO audit_event
SELECT e.* FROM audit_slice c JOIN orchestration_event e ON e.task_id = c.id
WHERE NOT (e.kind = 'by_hand' AND e.detail ? 'report')
"""
TASKS = """
INSERT INTO audit_task
SELECT t.id, t.workflow, t.reference, t.state, t.undo_at IS NOT NULL, t.reply_to, t.statuses,
    t.owner_application, t.statuses + t.owner_lead, t.ended_at,
    CASE WHEN t.reference ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN t.reference::uuid END,
    coalesce(m.unsent, 0),
    NOT coalesce(s.at_work, false)
        AND greatest(t.created_at, t.ended_at, t.undo_at, s.changed_at) < %(cut)s,
    coalesce(s.steps, 0), s.failed, s.ended, s.fresh, s.moving
FROM audit_slice c JOIN orchestration_task t ON t.id = c.id
LEFT JOIN (
    SELECT task, count(*) AS steps,
        max(greatest(dispatched_at, ended_at, pending_since)) AS changed_at,
        bool_or(locked_by IS NOT NULL) AS at_work,
        bool_or(state = 'error') AS failed,
        bool_and(state IN ('processed', 'skipped', 'cancelled')) AS ended,
        bool_and(state IN ('waiting', 'pending')) AS fresh,
        bool_or(state IN ('pending', 'processing', 'awaiting')
            OR state = 'waiting' AND pending_since IS NOT NULL) AS moving  -- that, for its time
    FROM audit_step GROUP BY task
) s ON s.task = t.id
LEFT JOIN LATERAL (
    SELECT max(number) AS unsent FROM orchestration_statusmessage
    WHERE task_id = t.id AND reply_to = t.owner_application
) m ON true
"""
# Each effect once: a service may know it by the reference of another task of the slice, as a refund by
# that of its order.
EFFECTS = """
INSERT INTO audit_effect
SELECT * FROM audit_ledger WHERE ctid = ANY (ARRAY(
    SELECT e.ctid FROM audit_task t JOIN audit_ledger e ON e.reference = t.reference
    UNION
    SELECT e.ctid FROM audit_task t JOIN audit_ledger e ON e.task = t.id
))
"""
INDEX_LEDGER = """
CREATE INDEX ON audit_ledger (reference);
CREATE INDEX ON audit_ledger (task) WHERE task IS NOT NULL;
ANALYZE audit_ledger
"""
ANALYZE = "ANALYZE audit_task, audit_step, audit_attempt, audit_event, audit_effect"
