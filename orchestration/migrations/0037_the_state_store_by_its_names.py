"""A view with the pattern's names: whoever looks for OrderID, LockedBy or FailureCount finds them."""

from django.db import migrations, models

# A cancelled or skipped step is Processed: nothing is left to be done for it. `state` tells them apart.
VIEW = """
CREATE VIEW orchestration_statestore AS
SELECT s.id, t.reference AS order_id, t.workflow, s.name AS step, s.direction, s.agent,
    s.locked_by, s.complete_by,
    CASE s.process_state
        WHEN 'waiting' THEN 'Pending'
        WHEN 'pending' THEN 'Pending'
        WHEN 'processing' THEN 'Processing'
        WHEN 'error' THEN 'Error'
        ELSE 'Processed'
    END AS process_state,
    s.failure_count, s.attempt, s.process_state AS state, t.state AS task_state, s.task_id
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0036_the_inbox_by_priority"),
    ]

    operations = [
        migrations.RunSQL(VIEW, "DROP VIEW orchestration_statestore"),
        migrations.CreateModel(
            name="StateStore",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        help_text="The step's.", primary_key=True, serialize=False
                    ),
                ),
                (
                    "order_id",
                    models.CharField(
                        help_text="The reference of its task.",
                        max_length=100,
                        verbose_name="OrderID",
                    ),
                ),
                ("workflow", models.CharField(max_length=60)),
                ("step", models.CharField(max_length=60)),
                ("direction", models.CharField(max_length=4)),
                (
                    "agent",
                    models.CharField(
                        help_text="Empty: a scheduler computes the step.", max_length=60
                    ),
                ),
                ("locked_by", models.CharField(max_length=80, null=True, verbose_name="LockedBy")),
                ("complete_by", models.DateTimeField(null=True, verbose_name="CompleteBy")),
                (
                    "process_state",
                    models.CharField(
                        choices=[
                            ("Pending", "Pending"),
                            ("Processing", "Processing"),
                            ("Processed", "Processed"),
                            ("Error", "Error"),
                        ],
                        max_length=10,
                        verbose_name="ProcessState",
                    ),
                ),
                ("failure_count", models.PositiveIntegerField(verbose_name="FailureCount")),
                ("attempt", models.PositiveIntegerField(help_text="How often it was begun.")),
                (
                    "state",
                    models.CharField(help_text="The step's state, one of seven.", max_length=10),
                ),
                ("task_state", models.CharField(max_length=10)),
                ("task_id", models.UUIDField()),
            ],
            options={
                "verbose_name": "state store",
                "verbose_name_plural": "state store",
                "db_table": "orchestration_statestore",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
    ]
