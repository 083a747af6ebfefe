"""A reply that waits for a locked row names its step, so that the attempt does not expire meanwhile."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0028_the_breakers_standard_states")]

    operations = [
        migrations.AddField(
            "deadletter",
            "step",
            models.BigIntegerField(
                null=True, help_text="Of a reply that waits for a locked row: the step it answers."
            ),
        ),
        migrations.AddIndex(
            "deadletter",
            models.Index(
                fields=["step"], name="dead_letter_step", condition=models.Q(step__isnull=False)
            ),
        ),
    ]
