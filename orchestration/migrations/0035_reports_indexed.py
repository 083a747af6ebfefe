"""Reports by services' own ids have indexes; the one of what is awaited is not used any more.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0034_external_ids")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS request_kept", ""),
        AddIndexConcurrently(
            model_name="taskrequest",
            index=models.Index(
                condition=models.Q(("refusal", "UNKNOWN_ID")),
                fields=["agent", "external_id"],
                name="request_kept",
            ),
        ),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS request_reported", ""),
        AddIndexConcurrently(
            model_name="taskrequest",
            index=models.Index(
                condition=models.Q(("agent", ""), _negated=True),
                fields=["agent", "created_at"],
                name="request_reported",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS wait_external",
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS wait_external"
                    " ON orchestration_wait (agent, external_id) WHERE NOT (external_id = '')",
                )
            ],
            state_operations=[migrations.RemoveIndex(model_name="wait", name="wait_external")],
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
