"""What shows why an attempt failed, in a table of its own: an attempt that succeeds writes nothing more."""

from importlib import import_module

import django.db.models.deletion
from django.db import migrations, models

append_only = import_module("orchestration.migrations.0002_guards").append_only


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0017_second_person_checked")]

    operations = [
        migrations.CreateModel(
            name="AttemptEvidence",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField(help_text="Of the attempt.")),
                ("traceback", models.TextField(blank=True, help_text="The last frames.")),
                ("status", models.PositiveSmallIntegerField(default=0, help_text="Of an HTTP answer; 0: none.")),
                ("answer", models.TextField(blank=True, help_text="What the service answered last.")),
                ("cut", models.BooleanField(default=False, help_text="The answer was longer.")),
                ("step", models.ForeignKey(db_constraint=False, db_index=False, help_text="Found by evidence_once.", on_delete=django.db.models.deletion.CASCADE, related_name="evidence", to="orchestration.step")),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("step", "number"), name="evidence_once")],
            },
        ),
        append_only("orchestration_attemptevidence"),
    ]
