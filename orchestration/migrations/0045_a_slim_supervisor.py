"""Undos are requests to a scheduler; leases say what a sweep started by a schedule leaves behind."""

import django.db.models.deletion
import orchestration.models.fields
from django.db import migrations, models

# The legal moves as of this migration; a test compares them with `states.py`.
STEP_MOVES = {
    "waiting": ["pending", "error", "cancelled"],
    "pending": ["processing", "error", "cancelled"],
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
    dependencies = [
        ("orchestration", "0044_what_workflows_load"),
    ]

    operations = [
        moves("orchestration_step", "process_state", STEP_MOVES),
        migrations.AddField(
            model_name="lease",
            name="awaited_until",
            field=models.DateTimeField(
                help_text="Until when the next sweep is not missed, if a schedule starts them.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="lease",
            name="memory",
            field=models.JSONField(
                db_default={},
                default=dict,
                help_text="What a sweep that a schedule started has left behind.",
            ),
        ),
        migrations.AlterField(
            model_name="event",
            name="kind",
            field=models.CharField(
                choices=[
                    ("retry", "Will be tried again"),
                    ("error", "Stopped in error"),
                    ("resubmitted", "Resubmitted"),
                    ("refused", "A late or repeated reply was refused"),
                    ("late", "Its effect was proven after it was given up"),
                    ("overdue", "Overdue"),
                    ("excused", "Failed while its agent was in trouble: not counted"),
                    ("waits", "Waits for an extended time"),
                    ("by_hand", "Done by hand"),
                    ("undo", "An undo was asked for"),
                    ("undo_asked", "The supervisor asked a scheduler to undo the task"),
                    ("no_undo", "An undo was refused"),
                    ("settled", "It was found out that nothing was done"),
                    ("held", "Held"),
                    ("released", "Released"),
                    ("priority", "Its priority was changed"),
                    ("probe", "A probe was asked for at once"),
                    ("acknowledged", "An alert was acknowledged"),
                    ("bulk", "Something was done to a bulk operation"),
                    ("incident", "Something was done about an incident"),
                    ("cause", "An incident changed by itself"),
                    ("retried", "A dead letter was retried"),
                    ("closed", "A dead letter or an alert was closed"),
                ],
                max_length=12,
            ),
        ),
        migrations.CreateModel(
            name="UndoRequest",
            fields=[
                (
                    "step",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="orchestration.step",
                    ),
                ),
                (
                    "unmended",
                    models.BooleanField(help_text="It is in error, and was not mended in time."),
                ),
                (
                    "requested_at",
                    models.DateTimeField(
                        db_default=orchestration.models.fields.DatabaseNow(), db_index=True
                    ),
                ),
                ("requested_by", models.CharField(help_text="The supervisor.", max_length=100)),
                ("reason", models.TextField()),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="orchestration.task"
                    ),
                ),
            ],
        ),
    ]
