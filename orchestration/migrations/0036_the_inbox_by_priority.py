"""The inbox in the order of priorities, and by age: indexes built beside the writers."""

from importlib import import_module

from django.db import migrations, models

OPEN = models.Q(refused_at__isnull=True)
FRESH = models.Q(refused_at__isnull=True, retry_at__isnull=True)

indexes = import_module("orchestration.migrations.0026_set_aside_by_index")
build, remove = indexes.build, indexes.remove


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("orchestration", "0035_priorities_age")]

    operations = [
        migrations.RunSQL(
            "SET lock_timeout = 0; SET statement_timeout = 0", migrations.RunSQL.noop
        ),
        *build(
            "submission",
            models.Index(
                models.OrderBy(models.F("retry_at"), nulls_first=True),
                models.OrderBy(models.F("priority"), descending=True),
                models.F("turn"),
                models.F("id"),
                condition=OPEN,
                name="submission_due",
            ),
        ),
        *build(
            "submission",
            models.Index(
                fields=["priority", "fairness_key", "turn"],
                condition=FRESH,
                name="submission_key",
            ),
        ),
        *build("submission", models.Index(fields=["id"], condition=FRESH, name="submission_age")),
        remove("submission", "submission_turn"),
        remove("submission", "submission_line"),
        migrations.RunSQL("RESET lock_timeout; RESET statement_timeout", migrations.RunSQL.noop),
    ]
