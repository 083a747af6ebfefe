"""The indexes of what waits, in the order of turns, built beside the writers."""

from importlib import import_module

from django.db import migrations, models

CLAIMABLE = models.Q(process_state="pending", run_after__isnull=True, held_by__isnull=True)
OPEN = models.Q(refused_at__isnull=True)


indexes = import_module("orchestration.migrations.0026_set_aside_by_index")
build, remove = indexes.build, indexes.remove


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("orchestration", "0031_keys_take_turns")]

    operations = [
        migrations.RunSQL(
            "SET lock_timeout = 0; SET statement_timeout = 0", migrations.RunSQL.noop
        ),
        *build(
            "step",
            models.Index(
                models.F("agent"),
                models.F("alone"),
                models.OrderBy(models.F("priority"), descending=True),
                models.F("turn"),
                models.F("id"),
                condition=CLAIMABLE,
                name="step_turn",
            ),
        ),
        *build(
            "step",
            models.Index(
                fields=["agent", "priority", "fairness_key", "turn"],
                condition=CLAIMABLE,
                name="step_line",
            ),
        ),
        remove("step", "step_claimable"),
        *build(
            "submission",
            models.Index(
                models.OrderBy(models.F("retry_at"), nulls_first=True),
                models.F("turn"),
                models.F("id"),
                condition=OPEN,
                name="submission_turn",
            ),
        ),
        *build(
            "submission",
            models.Index(
                fields=["fairness_key", "turn"],
                condition=models.Q(refused_at__isnull=True, retry_at__isnull=True),
                name="submission_line",
            ),
        ),
        remove("submission", "submission_queue"),
        migrations.RunSQL("RESET lock_timeout; RESET statement_timeout", migrations.RunSQL.noop),
    ]
