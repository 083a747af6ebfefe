"""A hold is cleared once; and what waits, is held or is late is found by indexes of its own.

The indexes are built beside the writers; an upgrade that was broken off can be run again, as in 0026.
"""

from importlib import import_module

from django.db import migrations, models

built = import_module("orchestration.migrations.0026_set_aside_by_index")
build, remove = built.build, built.remove


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("orchestration", "0029_replies_that_wait")]

    operations = [
        migrations.RunSQL(
            """ALTER TABLE orchestration_hold
                ADD COLUMN IF NOT EXISTS cleared boolean NOT NULL DEFAULT false""",
            "ALTER TABLE orchestration_hold DROP COLUMN cleared",
            state_operations=[
                migrations.AddField(
                    "hold",
                    "cleared",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="It has ended, and the steps that were parked for it are "
                        "claimable again.",
                    ),
                )
            ],
        ),
        migrations.RunSQL(
            "SET lock_timeout = 0; SET statement_timeout = 0", migrations.RunSQL.noop
        ),
        *build(
            "hold",
            models.Index(
                fields=["scope", "agent", "until"],
                name="hold_wide",
                condition=~models.Q(scope="task"),
            ),
        ),
        *build(
            "hold",
            models.Index(
                fields=["id"],
                name="hold_uncleared",
                condition=models.Q(until__isnull=False, cleared=False),
            ),
        ),
        *build(
            "hold",
            models.Index(
                fields=["scope", "-since"],
                name="hold_in_force",
                condition=models.Q(until__isnull=True),
            ),
        ),
        *build(
            "hold",
            models.Index(
                fields=["-until"], name="hold_ended", condition=models.Q(until__isnull=False)
            ),
        ),
        remove("hold", "hold_by_agent"),
        *build(
            "step",
            models.Index(
                models.F("agent"),
                models.Func("run_after", "held_by", function="num_nonnulls"),
                models.F("pending_since"),
                name="step_waiting",
                condition=models.Q(process_state="pending"),
            ),
        ),
        remove("step", "step_oldest"),
        *build(
            "task",
            models.Index(
                fields=["workflow"],
                name="task_late_workflow",
                condition=models.Q(
                    state__in=("pending", "processing", "undoing"), overdue=True
                ),
            ),
        ),
        *build(
            "task",
            models.Index(
                fields=["undo_at"], name="task_undoing", condition=models.Q(state="undoing")
            ),
        ),
        migrations.RunSQL("RESET lock_timeout; RESET statement_timeout", migrations.RunSQL.noop),
    ]
