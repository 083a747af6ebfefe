"""What a task is about has an index. It can be run again if it was interrupted."""

from importlib import import_module

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

before = import_module("orchestration.migrations.0021_step_indexes")


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0038_about")]

    operations = [
        migrations.RunSQL(before.UNTIL_DONE, before.AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS task_by_about", ""),
        AddIndexConcurrently(
            model_name='task',
            index=models.Index(condition=models.Q(('about_reference__gt', '')), fields=['about_reference', '-id'], name='task_by_about', opclasses=['varchar_pattern_ops', 'uuid_ops']),
        ),
        migrations.RunSQL(before.AS_USUAL, before.UNTIL_DONE),
    ]
