"""What may be removed once it is old, by time: closed alerts and dead letters, requests that were carried out.

It can be run again if it was interrupted.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

UNTIL_DONE = "SET lock_timeout = 0; SET statement_timeout = 0"
AS_USUAL = "RESET lock_timeout; RESET statement_timeout"
ENDED = (
    ("alert", "closed_at", "alert_closed"),
    ("submission", "closed_at", "submission_closed"),
    ("statusmessage", "closed_at", "status_closed"),
    ("taskrequest", "closed_at", "request_closed"),
    ("taskrequest", "done_at", "request_done"),
    ("incidenthour", "hour", "incident_hour_by_time"),
)


def built(model, field, name):
    """Return the operations that build an index of what has a time in a field."""
    condition = None if field == "hour" else models.Q(**{f"{field}__isnull": False})
    return [
        migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", ""),
        AddIndexConcurrently(
            model_name=model, index=models.Index(fields=[field], name=name, condition=condition)
        ),
    ]


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0013_retention")]

    operations = [
        migrations.RunSQL(UNTIL_DONE, AS_USUAL),
        *(operation for one in ENDED for operation in built(*one)),
        migrations.RunSQL(AS_USUAL, UNTIL_DONE),
    ]
