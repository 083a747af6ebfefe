"""Closed alerts and requests that were carried out, by time: what is old enough to be removed.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0013_retention")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS alert_closed", ""),
        AddIndexConcurrently(
            model_name="alert",
            index=models.Index(
                fields=["closed_at"],
                name="alert_closed",
                condition=models.Q(closed_at__isnull=False),
            ),
        ),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS request_done", ""),
        AddIndexConcurrently(
            model_name="taskrequest",
            index=models.Index(
                fields=["done_at"],
                name="request_done",
                condition=models.Q(done_at__isnull=False),
            ),
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
