"""The supervisor's request for an undo names the attempt for which it asks.

Code of the release before writes none, and its requests are heard as before.
"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0023_task_due_in_error")]

    operations = [
        migrations.AddField(
            model_name='undorequest',
            name='attempt',
            field=models.IntegerField(
                help_text='That of the step; a request for an earlier one undoes nothing.', null=True
            ),
        ),
    ]
