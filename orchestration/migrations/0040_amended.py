"""The input of a running task may change: what people did has this as well, and so its index.

It can be run again if it was interrupted.
"""

from importlib import import_module

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

before = import_module("orchestration.migrations.0021_step_indexes")


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0039_about_index")]

    operations = [
        migrations.AlterField(
            model_name='event',
            name='kind',
            field=models.CharField(choices=[('retry', 'Retry scheduled'), ('error', 'Stopped in error'), ('resubmitted', 'Resubmitted'), ('refused', 'Late or repeated reply refused'), ('late', 'Late effect detected'), ('overdue', 'Overdue'), ('excused', 'Failed while the breaker was open: not counted'), ('waits', 'Extended wait started'), ('by_hand', 'Done by hand'), ('reported', 'Result reported'), ('undo', 'Undo requested'), ('undo_asked', 'Undo requested by the supervisor'), ('no_undo', 'Undo refused'), ('settled', 'Confirmed that nothing was done'), ('held', 'Held'), ('released', 'Released'), ('priority', 'Priority changed'), ('probe', 'Immediate probe requested'), ('acknowledged', 'Alert acknowledged'), ('bulk', 'Bulk operation changed'), ('incident', 'Incident changed'), ('cause', 'Incident changed automatically'), ('retried', 'Dead letter retried'), ('closed', 'Dead letter or alert closed'), ('started', 'Started by hand'), ('amended', 'Input changed')], max_length=12),
        ),
        migrations.AlterField(
            model_name='statusmessage',
            name='kind',
            field=models.CharField(choices=[('received', 'Request received'), ('completed', 'Completed'), ('step', 'Step changed (only for applications that ask for it)'), ('action_needed', 'Rejected: the input must be changed'), ('failed', 'Failed: an operator was alerted'), ('resumed', 'Resumed after a failure'), ('undoing', 'Being undone'), ('undone', 'Undone: no effect is left'), ('refused', 'A request about it was refused'), ('reminder', 'A result is awaited still'), ('amended', 'The input was changed'), ('set_aside', 'Not accepted: waiting for an operator'), ('closed', 'Not taken: an operator decided so')], max_length=20),
        ),
        migrations.AlterField(
            model_name='taskrequest',
            name='what',
            field=models.CharField(choices=[('undo', 'Undo the task'), ('resubmit', 'Retry a failed step'), ('complete', 'Report the result of a step that awaits it'), ('amend', 'Change the input for steps to come')], max_length=10),
        ),
        migrations.RunSQL(before.UNTIL_DONE, before.AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS event_by_people", ""),
        AddIndexConcurrently(
            model_name='event',
            index=models.Index(condition=models.Q(('kind__in', ('resubmitted', 'by_hand', 'undo', 'no_undo', 'held', 'released', 'priority', 'probe', 'acknowledged', 'bulk', 'incident', 'retried', 'closed', 'started', 'amended'))), fields=['-at'], name='event_by_people'),
        ),
        RemoveIndexConcurrently(model_name='event', name='event_of_people'),
        migrations.RunSQL(before.AS_USUAL, before.UNTIL_DONE),
    ]
