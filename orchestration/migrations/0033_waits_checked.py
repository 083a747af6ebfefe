"""What was there before steps could end later keeps to the new constraints; what is awaited has an index.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0032_waits")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        ValidateConstraint(model_name="attempt", name="attempt_outcome_known"),
        ValidateConstraint(model_name="step", name="step_state_known"),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS step_awaiting", ""),
        AddIndexConcurrently(
            model_name="step",
            index=models.Index(
                condition=models.Q(("process_state", "awaiting")), fields=["id"], name="step_awaiting"
            ),
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
