"""The children of a step have indexes. It can be run again if it was interrupted."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0040_amended")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS task_of_parent", ""),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS task_child_unended", ""),
        AddIndexConcurrently(
            model_name="task",
            index=models.Index(
                condition=models.Q(("parent__isnull", False)), fields=["parent", "position"], name="task_of_parent"
            ),
        ),
        AddIndexConcurrently(
            model_name="task",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True), ("parent__isnull", False)),
                fields=["parent", "position"],
                name="task_child_unended",
            ),
        ),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
