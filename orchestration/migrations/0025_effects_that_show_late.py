"""The triggers learn the moves that undo what shows late; histories learn a kind of event."""

from django.db import migrations, models

# The legal moves as of this migration; a test compares them with `states.py`.
TASK_MOVES = {
    "pending": ["processing", "error", "undoing"],
    "processing": ["processed", "error", "undoing"],
    "processed": ["undoing"],
    "error": ["processing", "processed", "undoing", "undone"],
    "undoing": ["undone", "error"],
    "undone": ["undoing"],
}
STEP_MOVES = {
    "waiting": ["pending", "error", "cancelled"],
    "pending": ["processing", "cancelled"],
    "processing": ["processed", "pending", "error", "cancelled"],
    "processed": [],
    "error": ["pending", "skipped", "cancelled"],
    "skipped": [],
    "cancelled": ["pending"],
}


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
    dependencies = [("orchestration", "0024_clock_jumps")]

    operations = [
        moves("orchestration_task", "state", TASK_MOVES),
        moves("orchestration_step", "process_state", STEP_MOVES),
        migrations.AlterField(
            model_name='event',
            name='kind',
            field=models.CharField(choices=[('retry', 'Will be tried again'), ('error', 'Stopped in error'), ('resubmitted', 'Resubmitted'), ('refused', 'A late or repeated reply was refused'), ('late', 'Its effect was proven after it was given up'), ('overdue', 'Overdue'), ('excused', 'Failed while its agent was in trouble: not counted'), ('waits', 'Waits for an extended time'), ('by_hand', 'Done by hand'), ('undo', 'An undo was asked for'), ('no_undo', 'An undo was refused'), ('settled', 'It was found out that nothing was done'), ('held', 'Held'), ('released', 'Released'), ('probe', 'A probe was asked for at once'), ('acknowledged', 'An alert was acknowledged'), ('bulk', 'Something was done to a bulk operation'), ('incident', 'Something was done about an incident'), ('cause', 'An incident changed by itself'), ('retried', 'A dead letter was retried'), ('closed', 'A dead letter or an alert was closed')], max_length=12),
        ),
    ]
