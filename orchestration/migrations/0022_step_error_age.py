"""The failed steps of an incident have an index by age: for the time of the oldest.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0021_step_indexes")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS step_error_age", ""),
        AddIndexConcurrently(
            model_name='step',
            index=models.Index(condition=models.Q(('incident__isnull', False), ('process_state', 'error')), fields=['incident', 'ended_at'], name='step_error_age'),
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
