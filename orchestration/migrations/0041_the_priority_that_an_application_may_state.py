"""The highest priority that an application may state: a constant default, on a small table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0040_the_priority_of_a_task")]

    operations = [
        migrations.AddField(
            "application",
            "most_priority",
            models.SmallIntegerField(
                "highest priority",
                db_default=0,
                default=0,
                help_text="The highest that it may state for what it submits through the API.",
            ),
        ),
    ]
