"""Fills a database as after a month of heavy load: a million tasks, a fifth of them in error.

Set-based SQL, with triggers and foreign keys switched off (the session's role is `replica`) and the
plain indexes built afterwards: some minutes for a million tasks. The rows are those that the engine
would have written, as far as its pages read them: states, times, attempts, events, causes, roll-ups.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection

from bench.pages.filling import filling
from orchestration.console.statistics import rollups
from orchestration.models import RollUpMark
from orchestration.models.fields import DatabaseNow

DAYS = 30
CAUSES = 40

# One row for each task: its time and its fate. Most errors have few causes; some of the newest are
# in flight, retrying, overdue or being undone.
PLAN = """
CREATE TEMP TABLE plan AS
WITH numbered AS (
    SELECT n, clock_timestamp() - (1 - n / %(tasks)s::float8) * %(days)s * interval '1 day' AS at
    FROM generate_series(1, %(tasks)s) AS n
), drawn AS ({drawn})
SELECT n, at, kind, cause,
    CASE WHEN kind = 'pending' THEN 0 WHEN kind = 'error' THEN cause %% 4 ELSE n %% 5 END AS fails,
    (cause / 4) %% 2 = 0 AS rejected,
    (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
        || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid AS id,
    md5('order ' || n)::uuid AS reference,
    upper(substr(md5(n::text), 1, 5) || '-' || lpad(to_hex(n), 5, '0')) AS label
FROM drawn;
CREATE INDEX ON plan (id);
ANALYZE plan
"""

MONTH = """
SELECT n, at, floor(%(causes)s * ((n::bigint * 7919 %% 1000) / 1000.0) ^ 2)::int AS cause,
    CASE WHEN n %% %(every)s = 0 THEN 'error'
    WHEN n > %(tasks)s - %(newest)s AND n %% 10 BETWEEN 1 AND 6 AND n %% 10 <> 5
        THEN (ARRAY['retrying', 'pending', 'flight', 'undoing', '', 'overdue'])[n %% 10]
    WHEN n %% 97 = 0 THEN 'undone'
    ELSE 'processed' END AS kind
FROM numbered
"""
# All wait: some until a retry is due, the others for their turn.
BACKLOG = """
SELECT n, at, 0 AS cause, CASE WHEN n <= %(retrying)s THEN 'retrying' ELSE 'pending' END AS kind
FROM numbered
"""

CAUSES_AND_ALERTS = """
INSERT INTO orchestration_incident (fingerprint, version, workflow, step, direction, agent, outcome,
    code, message, sample, title, severity, state, failures, tasks, open_tasks, first_seen, last_seen,
    at_risk, had_open_tasks)
SELECT 'load-' || cause, 1, 'process_order', p.step, 'do', p.agent,
    CASE WHEN bool_or(rejected) THEN 'rejected' ELSE 'unknown' END, 'code_' || cause / 4,
    'the service answered with number ' || cause, 'the service answered with number ' || cause,
    'process_order: ' || p.step || ' failed (code_' || cause / 4 || ')', 'critical', 'new',
    count(*) * CASE WHEN bool_or(rejected) THEN 1 ELSE 3 END, count(*), count(*), min(at), max(at),
    jsonb_build_object('EUR', 2500 * count(*)), true
FROM plan JOIN place p ON p.place = plan.fails WHERE kind = 'error' GROUP BY cause, p.step, p.agent;
INSERT INTO orchestration_alert (fingerprint, incident_id, severity, title, detail, count,
    first_seen, last_seen)
SELECT 'step/' || id, id, 'critical', title, message, open_tasks, first_seen, last_seen
FROM orchestration_incident;
INSERT INTO orchestration_incidenthour (incident_id, hour, failures)
SELECT id, date_trunc('hour', clock_timestamp()) - h * interval '1 hour', 1 + (id + h) %% 17
FROM orchestration_incident, generate_series(0, 167) AS h
"""

PLACES = """
CREATE TEMP TABLE place AS SELECT * FROM (VALUES
    (0, 'reserve_stock', 'inventory', 'reserve', ARRAY[]::text[], 'release'),
    (1, 'authorize_payment', 'payment', 'authorize', ARRAY[]::text[], 'void'),
    (2, 'create_shipment', 'shipping', 'book', ARRAY['reserve_stock', 'authorize_payment'], 'cancel'),
    (3, 'capture_payment', 'payment', 'capture', ARRAY['create_shipment'], 'refund'),
    (4, 'send_confirmation', 'notification', 'send', ARRAY['capture_payment'], '')
) AS p (place, step, agent, action, after, undo)
"""

TASKS = """
INSERT INTO orchestration_task (id, workflow, reference, state, priority, data, reply_to, owner_application,
    statuses, overdue, complete_by, created_at, ended_at, undo_at, label, contact, value, currency)
SELECT id, 'process_order', reference,
    CASE kind WHEN 'error' THEN 'error' WHEN 'undone' THEN 'undone' WHEN 'undoing' THEN 'undoing'
        WHEN 'pending' THEN 'pending' WHEN 'processed' THEN 'processed' ELSE 'processing' END,
    0, jsonb_build_object('order', reference, 'total', 2500, 'currency', 'EUR', 'email',
        'person' || n %% 50000 || '@example.org', 'address', jsonb_build_object('city', 'Bern')),
    'shop', 'shop', 2, kind = 'overdue',
    CASE WHEN kind IN ('retrying', 'pending', 'flight', 'undoing') THEN clock_timestamp() + interval '9 h'
        ELSE at + interval '9 h' END,
    at, CASE WHEN kind IN ('processed', 'undone') THEN at + (2 + exp(3 * random())) * interval '1 s' END,
    CASE WHEN kind IN ('undone', 'undoing') THEN at + interval '3 s' END,
    label, 'person' || n %% 50000 || '@example.org', 100 + n::bigint * 37 %% 50000, 'EUR'
FROM plan;
INSERT INTO orders_order (id, number, email, name, street, postcode, city, country, total, currency,
    payment_method, status, status_number, fingerprint, created_at)
SELECT reference, label, 'person' || n %% 50000 || '@example.org',
    (ARRAY['Ada', 'Alan', 'Barbara', 'Edsger', 'Grace', 'Karen', 'Leslie', 'Niklaus'])[n %% 8 + 1] || ' '
        || initcap(translate(substr(md5((n %% 5000)::text), 1, 6), '0123456789', 'ghijklmnop')), 'Street 1',
    '3000', 'Bern', 'CH', 100 + n::bigint * 37 %% 50000, 'EUR', 'pm_card_visa',
    CASE kind WHEN 'error' THEN 'failed' WHEN 'processed' THEN 'confirmed' WHEN 'undone' THEN 'undone'
        ELSE 'received' END, 2, md5(n::text), at
FROM plan
"""

# Undo begins at the fourth step; the fifth was never begun.
STEPS = """
INSERT INTO orchestration_step (task_id, name, direction, agent, action, after, request,
    process_state, locked_by, complete_by, failure_count, attempt, generation, priority, run_after,
    dispatched_at, ended_at, pending_since, outcome, result, error_code, error_message, alert_id,
    incident_id, in_doubt, undo_action, keyed_at)
SELECT s.id, step, 'do', agent, action, after, jsonb_build_object('order', reference), state,
    CASE WHEN state = 'processing' THEN 'scheduler@host:1-abcdef' END,
    CASE WHEN state = 'processing' THEN clock_timestamp() + interval '9 h' END,
    CASE WHEN state = 'error' AND NOT rejected THEN 3 WHEN run THEN 2 ELSE 0 END,
    CASE WHEN state = 'error' AND NOT rejected THEN 3 WHEN run THEN 2
        WHEN state = 'processed' AND n %% 20 = 7 AND place = 0 THEN 2
        WHEN state IN ('processed', 'error', 'processing') THEN 1 ELSE 0 END, 1, 0,
    CASE WHEN run THEN clock_timestamp() + (1 + random()) * interval '1 h' END,
    CASE WHEN state IN ('processed', 'error', 'processing') THEN s.at + place * interval '1 s' END,
    CASE WHEN state IN ('processed', 'error', 'cancelled')
        THEN s.at + (place + 0.05 * exp(2 * random())) * interval '1 s' END,
    CASE WHEN state <> 'waiting' THEN s.at END,
    CASE WHEN state = 'processed' THEN 'done' WHEN state = 'error' AND rejected THEN 'rejected'
        WHEN state = 'error' OR run THEN 'unknown' ELSE '' END,
    CASE WHEN state = 'processed' THEN '{"id": "x"}'::jsonb END,
    CASE WHEN state = 'error' THEN 'code_' || cause / 4 WHEN run THEN 'timeout' ELSE '' END,
    CASE WHEN state = 'error' THEN 'the service answered with number ' || cause ELSE '' END,
    CASE WHEN state = 'error' THEN alert END, CASE WHEN state = 'error' THEN incident END,
    state = 'error' AND NOT rejected, undo,
    CASE WHEN state IN ('processed', 'error', 'processing') THEN s.at END
FROM (SELECT plan.*, p.*, kind = 'retrying' AND place = fails AS run, CASE
        WHEN kind = 'processed' OR (kind IN ('undone', 'undoing') AND place < 4) THEN 'processed'
        WHEN kind IN ('undone', 'undoing') THEN 'cancelled'
        WHEN place < fails THEN 'processed'
        WHEN place > fails THEN 'waiting'
        WHEN kind = 'error' THEN 'error'
        WHEN kind IN ('flight', 'overdue') THEN 'processing'
        ELSE 'pending' END AS state
    FROM plan CROSS JOIN place p WHERE n BETWEEN %(low)s AND %(high)s) AS s
LEFT JOIN (SELECT a.id AS alert, a.incident_id AS incident, i.fingerprint
    FROM orchestration_alert a JOIN orchestration_incident i ON i.id = a.incident_id) AS why
    ON kind = 'error' AND why.fingerprint = 'load-' || cause
"""

UNDO_STEPS = """
INSERT INTO orchestration_step (task_id, name, direction, agent, action, after, request,
    process_state, failure_count, attempt, generation, priority, dispatched_at, ended_at,
    pending_since, outcome, result, error_code, error_message)
SELECT s.id, step, 'undo', agent, undo, ARRAY[]::text[], '{}', state, 0, (state = 'processed')::int, 1, 0,
    CASE WHEN state = 'processed' THEN s.at + interval '4 s' END,
    CASE WHEN state = 'processed' THEN s.at + interval '4.2 s' END,
    CASE WHEN state <> 'waiting' THEN s.at END, CASE WHEN state = 'processed' THEN 'done' ELSE '' END,
    CASE WHEN state = 'processed' THEN '{}'::jsonb END, '', ''
FROM (SELECT plan.*, p.*, CASE WHEN kind = 'undone' THEN 'processed' WHEN place = 3 THEN 'pending'
        ELSE 'waiting' END AS state
    FROM plan CROSS JOIN place p WHERE kind IN ('undone', 'undoing') AND place < 4) AS s
"""

ATTEMPTS = """
INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent, dispatched_at,
    started_at, ended_at, outcome, tries, error_code, error_message)
SELECT s.id, number, 1, 'scheduler@host:1-abcdef', s.agent || '@host:1-abcdef',
    s.dispatched_at - (s.attempt - number) * interval '2 s',
    s.dispatched_at - (s.attempt - number) * interval '2 s' + interval '0.01 s',
    coalesce(s.ended_at, s.dispatched_at) - (s.attempt - number) * interval '2 s',
    CASE WHEN s.process_state = 'processed' AND number < s.attempt THEN 'transient' ELSE s.outcome END,
    1, s.error_code, s.error_message
FROM orchestration_step s CROSS JOIN LATERAL generate_series(1, s.attempt) AS number
WHERE s.dispatched_at IS NOT NULL AND s.process_state IN ('processed', 'error')
"""

EVENTS = """
INSERT INTO orchestration_event (task_id, step_id, kind, actor, reason, detail, attempt, at)
SELECT task_id, id, CASE WHEN number = attempt THEN 'error' ELSE 'retry' END,
    'supervisor@host:1-abcdef (epoch 1)', error_message, '{}', number,
    ended_at - (attempt - number) * interval '2 s'
FROM orchestration_step CROSS JOIN LATERAL generate_series(1, attempt) AS number
WHERE process_state = 'error';
INSERT INTO orchestration_event (task_id, step_id, kind, actor, reason, detail, attempt, at)
SELECT task_id, id, 'resubmitted', 'ann', 'their service is mended', '{}', 1, ended_at
FROM orchestration_step WHERE process_state = 'processed' AND id %% 500 = 0;
INSERT INTO orchestration_incidenthit (incident_id, step_id, failures, first_at, last_at)
SELECT incident_id, id, attempt, ended_at, ended_at FROM orchestration_step
WHERE process_state = 'error'
"""


def seed(
    tasks: int,
    failures: int,
    say: Callable[[str], None],
    *,
    days: int = DAYS,
    newest: int | None = None,
) -> None:
    """Fill an empty database with the tasks of a number of days; requires a superuser of Postgres.

    More than half of the `newest` have not ended: those of the last 2 % unless it is given.
    """
    sizes = {
        "tasks": tasks,
        "every": max(1, tasks // failures),
        "days": days,
        "newest": tasks // 50 if newest is None else newest,
        "causes": CAUSES,
    }
    with filling(say) as (cursor, did):
        _fill(cursor, did, MONTH, sizes, causes=CAUSES_AND_ALERTS)
        for words, statement in (("undo steps", UNDO_STEPS), ("attempts", ATTEMPTS),
                                 ("events", EVENTS)):  # fmt: skip
            cursor.execute(statement, {})
            did(words)
    _roll_up()
    say("roll-ups")


def seed_backlog(tasks: int, retrying: int, say: Callable[[str], None]) -> None:
    """Fill an empty database with waiting tasks, the oldest of them until a retry is due."""
    sizes = {"tasks": tasks, "retrying": retrying, "days": DAYS}
    with filling(say) as (cursor, did):
        _fill(cursor, did, BACKLOG, sizes)


def _fill(
    cursor: Any, did: Callable[[str], None], drawn: str, sizes: dict[str, Any], causes: str = ""
) -> None:
    """Write the tasks of a plan and their steps."""
    tasks = sizes["tasks"]
    for words, statement in (("places", PLACES), ("plan", PLAN.format(drawn=drawn)),
                             ("causes", causes), ("tasks", TASKS)):  # fmt: skip
        if statement:
            cursor.execute(statement, sizes)
            did(words)
    for low in range(1, tasks + 1, 100_000):
        cursor.execute(STEPS, {"low": low, "high": low + 99_999})
        did(f"steps of {min(tasks, low + 99_999):,} tasks")


def _roll_up() -> None:
    """Write the roll-ups of the last week, of tasks and of gates."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now = cursor.fetchone()[0]
        cursor.execute("SET statement_timeout = 0")
        start = now - timedelta(days=7)
        while start < now:
            end = min(now, start + timedelta(hours=6))
            rollups.count(start, end)
            start = end
        cursor.execute(GATES, {"spans": list(rollups.SPANS)})
    rollups.prune(now)
    RollUpMark.objects.update(until=DatabaseNow())


# the gates' past is not in other tables: invented values that rise and fall
GATES = """
INSERT INTO orchestration_gaterollup (span, start, agent, samples, blocked_samples,
    in_flight, room, waiting, oldest)
SELECT span, date_bin(span * interval '1 second', clock_timestamp(), 'epoch') - k * span * interval '1 s',
    p.agent, span / 5, 0, (p.window * (0.3 + 0.2 * sin(k / 7.0 + length(p.agent))))::int, p.window,
    k %% 9, 2 + 2 * sin(k / 5.0 + length(p.agent))
FROM orchestration_policy p, unnest(%(spans)s::int[]) AS span, generate_series(0, 95) AS k
ON CONFLICT DO NOTHING
"""
