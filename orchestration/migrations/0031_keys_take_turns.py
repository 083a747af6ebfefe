"""Fairness keys and turns. The columns have constant defaults, so no table is rewritten.

What is pending already has turn 0: it goes first, in the order it had.
"""

import django.db.models.deletion
import simple_history.models
from django.conf import settings
from django.db import migrations, models

HISTORY = [("+", "Created"), ("~", "Changed"), ("-", "Deleted")]
WEIGHT = {
    "default": 1.0,
    "help_text": "Turns that it gets for one of a key whose weight is 1.",
}


def key(help_text: str) -> models.CharField:
    """Return the column of a fairness key."""
    return models.CharField(
        max_length=100, blank=True, default="", db_default="", help_text=help_text
    )


def turn(help_text: str) -> models.BigIntegerField:
    """Return the column of a turn."""
    return models.BigIntegerField(default=0, db_default=0, help_text=help_text)


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0030_cost_follows_what_is_due"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FairnessWeight",
            fields=[
                ("id", models.BigAutoField(
                    auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                )),
                ("key", models.CharField(max_length=100, unique=True)),
                ("weight", models.FloatField(**WEIGHT)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["key"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("weight__gte", 0.01), ("weight__lte", 100)),
                        name="fairness_weight",
                        violation_error_message="A weight is between 0.01 and 100.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="HistoricalFairnessWeight",
            fields=[
                ("id", models.BigIntegerField(
                    auto_created=True, blank=True, db_index=True, verbose_name="ID"
                )),
                ("key", models.CharField(db_index=True, max_length=100)),
                ("weight", models.FloatField(**WEIGHT)),
                ("updated_at", models.DateTimeField(blank=True, editable=False)),
                ("history_id", models.AutoField(primary_key=True, serialize=False)),
                ("history_date", models.DateTimeField(db_index=True)),
                ("history_change_reason", models.CharField(max_length=100, null=True)),
                ("history_type", models.CharField(choices=HISTORY, max_length=1)),
                ("history_user", models.ForeignKey(
                    null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+",
                    to=settings.AUTH_USER_MODEL,
                )),
            ],
            options={
                "verbose_name": "historical fairness weight",
                "verbose_name_plural": "historical fairness weights",
                "ordering": ("-history_date", "-history_id"),
                "get_latest_by": ("history_date", "history_id"),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.AddField("task", "fairness_key", key("Within a priority, keys take turns.")),
        migrations.AddField("step", "fairness_key", key("The task's.")),
        migrations.AddField(
            "step", "turn", turn("Its place among those of its agent and priority.")
        ),
        migrations.AddField("submission", "fairness_key", key("Keys take turns.")),
        migrations.AddField("submission", "turn", turn("Its place in the queue.")),
    ]  # fmt: skip
