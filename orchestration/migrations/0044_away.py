"""Steps that may be given up as their service is away have an index; it can be run again if interrupted."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0043_dry_run_names_follow_ups")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS step_away", ""),
        AddIndexConcurrently(
            model_name="step",
            index=models.Index(
                condition=models.Q(("flow__has_key", "away_after"), ("process_state", "pending")),
                fields=["agent", "pending_since"],
                name="step_away",
            ),
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
