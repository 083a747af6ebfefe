"""The steps in flight, by their time of dispatch: looks for them need not begin at the first there ever was.

Built beside the former index, which takes its place to the end; it can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0008_steps_without_constraint")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS step_in_flight_since", ""),
        AddIndexConcurrently(
            model_name="step",
            index=models.Index(
                fields=["agent", "dispatched_at"],
                name="step_in_flight_since",
                condition=models.Q(process_state="processing", locked_by__isnull=False),
            ),
        ),
        RemoveIndexConcurrently(model_name="step", name="step_in_flight"),
        migrations.RenameIndex(
            model_name="step", old_name="step_in_flight_since", new_name="step_in_flight"
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
