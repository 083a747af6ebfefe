"""A step may have a condition, and say what follows a refusal.

Code of the release before does neither: use it once that no longer runs.
"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0029_done_by")]

    operations = [
        migrations.AddField(
            model_name="step",
            name="flow",
            field=models.JSONField(
                help_text="Its condition, and what follows a refusal: {when, refused}.", null=True
            ),
        ),
    ]
