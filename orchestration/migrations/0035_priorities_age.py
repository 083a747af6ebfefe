"""When steps count as having waited for long: constant defaults, on small tables."""

from django.db import migrations, models


def aged_after() -> models.FloatField:
    """Return the column."""
    return models.FloatField(
        db_default=60.0,
        default=60.0,
        help_text="Seconds after which a tenth of the places is for the steps that have waited the "
        "longest, whatever their priority.",
    )


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0034_holds_and_patience")]

    operations = [
        migrations.AddField("policy", "aged_after", aged_after()),
        migrations.AddField("historicalpolicy", "aged_after", aged_after()),
        migrations.AddConstraint(
            "policy",
            models.CheckConstraint(
                condition=models.Q(("aged_after__gte", 0), ("aged_after__lte", 604_800)),
                name="policy_aged_after",
                violation_error_message=(
                    "Steps wait for long after 0 seconds at the least, and a week at the most."
                ),
            ),
        ),
        migrations.AlterField(
            "submission",
            "priority",
            models.SmallIntegerField(default=0, help_text="Higher goes first."),
        ),
        migrations.AlterField(
            "submission",
            "fairness_key",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Within a priority, keys take turns.",
                max_length=100,
            ),
        ),
        migrations.AlterField(
            "submission",
            "turn",
            models.BigIntegerField(
                db_default=0, default=0, help_text="Its place among those of its priority."
            ),
        ),
    ]
