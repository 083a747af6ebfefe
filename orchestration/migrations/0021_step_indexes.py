"""What is retried has an index apart from what waits for the time of its first attempt.

The index of what failed has also when it is undone, by which the list of tasks can be sorted.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0020_plain_help_texts")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS step_retrying", ""),
        AddIndexConcurrently(
            model_name='step',
            index=models.Index(condition=models.Q(('attempt__gt', 0), ('process_state', 'pending'), ('run_after__isnull', False)), fields=['run_after'], name='step_retrying'),
        ),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS step_in_error", ""),
        AddIndexConcurrently(
            model_name='step',
            index=models.Index(condition=models.Q(('process_state', 'error')), fields=['task'], include=('name', 'agent', 'error_code', 'attempt', 'resolve_by'), name='step_in_error'),
        ),
        RemoveIndexConcurrently(model_name='step', name='step_failed'),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
