"""Steps may have child tasks: a task knows the step whose child it is, and schedulers look at steps' children.

Code of the release before makes none, and does not end a step whose children have ended: declare such steps
once that no longer runs. The indexes of children are made by the next migration.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0036_schedules")]

    operations = [
        migrations.AddField(
            model_name="task",
            name="parent",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                help_text="The step whose child it is; empty for a task that was submitted.",
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="children",
                to="orchestration.step",
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="position",
            field=models.IntegerField(
                help_text="Its place among the children of its step, from 0.", null=True
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="result",
            field=models.JSONField(
                help_text="Of a child, what it comes to: a template until it is processed, then the value.",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="Join",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "undo_below",
                    models.PositiveIntegerField(
                        help_text="The children at positions below this are to be undone.", null=True
                    ),
                ),
                (
                    "step",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        help_text="Whose children they are.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="orchestration.step",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="orchestration.task",
                    ),
                ),
            ],
        ),
    ]
