"""Tasks in error have an index by the time at which they are due: for the list in that order.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0022_step_error_age")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS task_due_in_error", ""),
        AddIndexConcurrently(
            model_name='task',
            index=models.Index(condition=models.Q(('state', 'error')), fields=['complete_by'], name='task_due_in_error'),
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
