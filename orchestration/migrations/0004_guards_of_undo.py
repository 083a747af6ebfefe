"""Gates shut by hand become holds; the triggers learn the moves that an undo needs."""

from django.db import migrations

# The legal moves as of this migration; a test compares them with `states.py`.
TASK_MOVES = {
    "pending": ["processing", "error", "undoing"],
    "processing": ["processed", "error", "undoing"],
    "processed": ["undoing"],
    "error": ["processing", "processed", "undoing", "undone"],
    "undoing": ["undone", "error"],
    "undone": [],
}
STEP_MOVES = {
    "waiting": ["pending", "error", "cancelled"],
    "pending": ["processing", "cancelled"],
    "processing": ["processed", "pending", "error", "cancelled"],
    "processed": [],
    "error": ["pending", "skipped", "cancelled"],
    "skipped": [],
    "cancelled": [],
}

HOLDS = """
INSERT INTO orchestration_hold (scope, agent, workflow, step, cause, reason, actor, since,
    released_by, released_why)
SELECT 'agent', agent, '', '', 'hand', reason, 'upgrade', clock_timestamp(), '', ''
FROM orchestration_gate WHERE NOT open;
UPDATE orchestration_step SET pending_since = clock_timestamp() WHERE process_state = 'pending';
UPDATE orchestration_step s SET in_doubt = true
WHERE process_state IN ('pending', 'processing', 'error') AND EXISTS (
    SELECT 1 FROM orchestration_attempt a WHERE a.step_id = s.id AND a.generation = s.generation
    AND a.outcome IN ('unknown', 'expired'));
UPDATE orchestration_step s SET keyed_at = (
    SELECT min(dispatched_at) FROM orchestration_attempt a
    WHERE a.step_id = s.id AND a.generation = s.generation)
WHERE process_state IN ('pending', 'processing', 'error');
SET CONSTRAINTS ALL IMMEDIATE
"""


def moves(table: str, column: str, legal: dict[str, list[str]]) -> migrations.RunSQL:
    """Return the operation that changes which moves the trigger of `table` lets pass."""
    name = f"{table}_moves"
    allowed = ", ".join(f"('{a}', '{b}')" for a, after in legal.items() for b in after)
    return migrations.RunSQL(
        f"""
        CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF (OLD.{column}, NEW.{column}) NOT IN ({allowed}) THEN
                RAISE EXCEPTION 'illegal move of % from % to %',
                    TG_TABLE_NAME, OLD.{column}, NEW.{column} USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END $$
        """,
        migrations.RunSQL.noop,
    )


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0003_trouble")]

    operations = [
        migrations.RunSQL(HOLDS, migrations.RunSQL.noop),
        moves("orchestration_task", "state", TASK_MOVES),
        moves("orchestration_step", "process_state", STEP_MOVES),
        migrations.RunSQL(
            "ALTER TABLE orchestration_gate SET (fillfactor = 50)",
            "ALTER TABLE orchestration_gate RESET (fillfactor)",
        ),
    ]
