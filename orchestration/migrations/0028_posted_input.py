"""A task keeps a hash of what was posted: the same posting again is known after its input was amended.

Code of the release before writes none, and such tasks are compared by their present input, as before.
"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0027_retry_after_cap")]

    operations = [
        migrations.AddField(
            model_name="task",
            name="posted",
            field=models.UUIDField(
                help_text="Hash of the input as it was posted; empty: made by an older release.", null=True
            ),
        ),
    ]
