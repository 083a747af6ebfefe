"""Tasks that wait for three days, for what their service accepted or for their time: they cost nothing."""

from collections.abc import Callable
from typing import Any

from bench.pages.filling import filling

AWAITING = """
WITH tasks AS (
    INSERT INTO orchestration_task (id, workflow, reference, state, priority, fairness_key, data, reply_to,
        owner_application, statuses, overdue, complete_by, clock_jumps, created_at, notify_steps, label,
        contact, value, currency)
    SELECT gen_random_uuid(), %(workflow)s, 'wait-' || n, 'processing', 0, '', '{"name": "Ada"}', '', '',
        0, false, clock_timestamp() + interval '9 days', 0, clock_timestamp(), false, '', '', 0, ''
    FROM generate_series(1, %(many)s) AS n RETURNING id
), steps AS (
    INSERT INTO orchestration_step (task_id, name, direction, agent, action, after, request,
        process_state, failure_count, attempt, generation, priority, fairness_key, turn, outcome,
        error_code, error_message, undo_action, irreversible, result)
    SELECT id, %(step)s, 'do', %(agent)s, %(action)s, '{}', '{}', 'awaiting', 0, 1, 1, 0, '', 0, 'later',
        '', '', '', '', '{}'
    FROM tasks RETURNING id, task_id
)
INSERT INTO orchestration_wait (step_id, task_id, agent, external_id, person, signal, awaited_at, ends_by,
    fixed, due_at, look, look_at, looks, asked_last, reminded)
SELECT id, task_id, %(agent)s, 'pi_' || id, '', '', clock_timestamp(),
    clock_timestamp() + interval '3 days', false, clock_timestamp() + interval '3 days', 60,
    clock_timestamp() + interval '1 day', 0, false, 0
FROM steps
"""
# The same that wait for their time before they begin; `pending_since` says since when.
DELAYED = AWAITING.replace(
    "'awaiting', 0, 1, 1, 0, '', 0, 'later'", "'waiting', 0, 0, 1, 0, '', 0, ''"
).replace(
    """'pi_' || id, '', '', clock_timestamp(),
    clock_timestamp() + interval '3 days', false, clock_timestamp() + interval '3 days', 60,
    clock_timestamp() + interval '1 day',""",
    """'', '', '', NULL,
    NULL, false, clock_timestamp() + interval '3 days', NULL, NULL,""",
)
SINCE = """
UPDATE orchestration_step s SET pending_since = clock_timestamp(), flow = '{"not_before": 259200}'
FROM orchestration_wait w WHERE w.step_id = s.id AND s.process_state = 'waiting'
"""
GREETINGS = {"workflow": "greet", "step": "hello", "agent": "greeter", "action": "greet"}
PAYMENTS = {
    "workflow": "process_order", "step": "authorize_payment", "agent": "payment", "action": "authorize",
}  # fmt: skip


def seed_waits(many: int, say: Callable[[str], None]) -> None:
    """Add orders whose payments are awaited; requires a superuser of Postgres."""
    with filling(say) as (cursor, did):
        await_many(cursor, many, PAYMENTS)
        did(f"{many:,} payments that are awaited")


def await_many(cursor: Any, many: int, step: dict[str, str]) -> None:
    """Write tasks of one step each, which its service has accepted."""
    cursor.execute(AWAITING, {**step, "many": many})


def delay_many(cursor: Any, many: int, step: dict[str, str]) -> None:
    """Write tasks of one step each, which waits for its time."""
    cursor.execute(DELAYED, {**step, "many": many})
    cursor.execute(SINCE)
