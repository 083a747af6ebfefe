"""Tasks can be started by hand: the permission, and the kind of event, that the index of acts has to know.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0018_attempt_evidence")]

    operations = [
        migrations.AlterModelOptions(
            name='task',
            options={'permissions': [('operate', "Can see the operators' dashboard"), ('resubmit', 'Can resubmit failed steps'), ('correct', "Can change a failed step's input, or say that it was done by hand"), ('start', 'Can start tasks by hand'), ('undo', 'Can have tasks undone'), ('force_undo', 'Can have tasks undone although something of them cannot be'), ('prioritize', 'Can change the priority of tasks'), ('bulk', 'Can act on many tasks at once'), ('approve', 'Can be the second person for a big act on many tasks'), ('see_personal', 'Can see personal data')]},
        ),
        migrations.AlterField(
            model_name='event',
            name='kind',
            field=models.CharField(choices=[('retry', 'Retry scheduled'), ('error', 'Stopped in error'), ('resubmitted', 'Resubmitted'), ('refused', 'Late or repeated reply refused'), ('late', 'Late effect detected'), ('overdue', 'Overdue'), ('excused', 'Failed while the breaker was open: not counted'), ('waits', 'Extended wait started'), ('by_hand', 'Done by hand'), ('undo', 'Undo requested'), ('undo_asked', 'Undo requested by the supervisor'), ('no_undo', 'Undo refused'), ('settled', 'Confirmed that nothing was done'), ('held', 'Held'), ('released', 'Released'), ('priority', 'Priority changed'), ('probe', 'Immediate probe requested'), ('acknowledged', 'Alert acknowledged'), ('bulk', 'Bulk operation changed'), ('incident', 'Incident changed'), ('cause', 'Incident changed automatically'), ('retried', 'Dead letter retried'), ('closed', 'Dead letter or alert closed'), ('started', 'Started by hand')], max_length=12),
        ),
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS event_of_people", ""),
        AddIndexConcurrently(
            model_name='event',
            index=models.Index(condition=models.Q(('kind__in', ('resubmitted', 'by_hand', 'undo', 'no_undo', 'held', 'released', 'priority', 'probe', 'acknowledged', 'bulk', 'incident', 'retried', 'closed', 'started'))), fields=['-at'], name='event_of_people'),
        ),
        RemoveIndexConcurrently(model_name='event', name='event_by_people'),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
