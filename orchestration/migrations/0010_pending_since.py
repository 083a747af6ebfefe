"""What is pending has the time since when: looks for what waits go along it.

Steps are checked while work goes on; it can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

UNTIL_DONE = "SET statement_timeout = 0"
AS_USUAL = "RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0009_in_flight_since")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE orchestration_step DROP CONSTRAINT IF EXISTS step_pending_since", ""
        ),
        AddConstraintNotValid(
            model_name="step",
            constraint=models.CheckConstraint(
                condition=~models.Q(process_state="pending")
                | models.Q(pending_since__isnull=False),
                name="step_pending_since",
            ),
        ),
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        ValidateConstraint(model_name="step", name="step_pending_since"),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
