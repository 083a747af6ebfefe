"""A step that was done by hand is processed, and says by whom; skipped means that it was not needed.

Code of the release before writes skipped for what was done by hand: the trigger makes that processed. It can be
run again if it was interrupted.
"""

from importlib import import_module

from django.db import migrations, models

before = import_module("orchestration.migrations.0005_claimed_at_once")
usual = import_module("orchestration.migrations.0011_usual_moves")

STEP_MOVES = {
    **before.STEP_MOVES,
    "waiting": ["pending", "processing", "skipped", "error", "cancelled"],
    "processing": ["processed", "pending", "skipped", "error", "cancelled"],
    "error": ["pending", "processed", "cancelled"],
}
BATCH = 1000
BY_HAND = """
UPDATE orchestration_step s SET process_state = 'processed', done_by = coalesce((
    SELECT e.actor FROM orchestration_event e
    WHERE e.task_id = s.task_id AND e.step_id = s.id AND e.kind = 'by_hand' ORDER BY e.id DESC LIMIT 1), '?')
WHERE s.id = ANY(%s)
"""


def only_moves(moves):
    """Return the statement for the trigger's function, which reads what the release before wrote as it is now."""
    return f"""
        CREATE OR REPLACE FUNCTION orchestration_step_moves() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF (OLD.process_state, NEW.process_state) = ('error', 'skipped') THEN
                NEW.process_state := 'processed';
                NEW.done_by := '?';
            ELSIF (OLD.process_state, NEW.process_state) NOT IN ({usual.pairs(moves)}) THEN
                RAISE EXCEPTION 'illegal move of % from % to %',
                    TG_TABLE_NAME, OLD.process_state, NEW.process_state USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END $$;
        """


def convert(_, schema_editor):
    """Make what was done by hand processed, in batches."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT id FROM orchestration_step WHERE process_state = 'skipped'")
        steps = [step for (step,) in cursor.fetchall()]
        for first in range(0, len(steps), BATCH):
            cursor.execute(BY_HAND, [steps[first : first + BATCH]])


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0028_posted_input")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "ALTER TABLE orchestration_step ADD COLUMN IF NOT EXISTS"
                    " done_by varchar(150) DEFAULT '' NOT NULL",
                    "ALTER TABLE orchestration_step DROP COLUMN done_by",
                )
            ],
            state_operations=[
                migrations.AddField(
                    model_name="step",
                    name="done_by",
                    field=models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Who did it by hand, if a person did.",
                        max_length=150,
                    ),
                )
            ],
        ),
        migrations.RunSQL(
            only_moves({**STEP_MOVES, "skipped": ["processed"]}),
            usual.only_moves("orchestration_step", "process_state", before.STEP_MOVES),
        ),
        migrations.RunPython(convert, migrations.RunPython.noop),
        migrations.RunSQL(only_moves(STEP_MOVES), migrations.RunSQL.noop),
    ]
