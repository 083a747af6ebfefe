"""Indexes of what was set aside, built beside the writers of large tables.

A build waits for every older snapshot, a dump's say, for as long as that takes; one that was broken off
can simply be run again.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

ACTS = (
    *("resubmitted", "by_hand", "undo", "no_undo", "held", "released", "probe", "acknowledged"),
    *("bulk", "incident", "retried", "closed"),
)


def build(model: str, index: models.Index) -> list[Operation]:
    """Return the operations that build an index, whatever an earlier run left of it."""
    gone = f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}"
    return [migrations.RunSQL(gone, gone), AddIndexConcurrently(model, index)]


def remove(model: str, name: str) -> Operation:
    """Return the operation that removes an index, if it is still there."""
    return migrations.RunSQL(
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
        migrations.RunSQL.noop,
        state_operations=[migrations.RemoveIndex(model, name)],
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("orchestration", "0025_effects_that_show_late")]

    operations = [
        migrations.RunSQL(
            "SET lock_timeout = 0; SET statement_timeout = 0", migrations.RunSQL.noop
        ),
        *build(
            "event",
            models.Index(
                fields=["-at"], name="event_of_people", condition=models.Q(kind__in=ACTS)
            ),
        ),
        remove("event", "event_acts"),
        *build(
            "statusmessage",
            models.Index(
                models.F("reply_to"),
                models.OrderBy(models.F("send_after"), nulls_first=True),
                models.F("id"),
                condition=models.Q(("refused_at__isnull", True)),
                name="status_due",
            ),
        ),
        *build(
            "statusmessage",
            models.Index(
                condition=models.Q(
                    models.Q(("reason", ""), _negated=True), ("closed_at__isnull", True)
                ),
                fields=["id"],
                name="status_aside",
            ),
        ),
        *build(
            "statusmessage",
            models.Index(
                condition=models.Q(
                    models.Q(("reason", ""), _negated=True), ("closed_at__isnull", True)
                ),
                fields=["reply_to", "refused_at", "tries"],
                name="status_suffering",
            ),
        ),
        *build(
            "submission",
            models.Index(
                models.OrderBy(models.F("retry_at"), nulls_first=True),
                models.F("id"),
                condition=models.Q(("refused_at__isnull", True)),
                name="submission_queue",
            ),
        ),
        *build(
            "submission",
            models.Index(
                condition=models.Q(
                    models.Q(
                        ("refused_at__isnull", False),
                        models.Q(("problem", ""), _negated=True),
                        _connector="OR",
                    ),
                    ("closed_at__isnull", True),
                ),
                fields=["id"],
                name="submission_aside",
            ),
        ),
        *build(
            "submission",
            models.Index(
                condition=models.Q(
                    models.Q(
                        ("refused_at__isnull", False),
                        models.Q(("problem", ""), _negated=True),
                        _connector="OR",
                    ),
                    ("closed_at__isnull", True),
                ),
                fields=["workflow", "problem", "tries"],
                name="submission_suffering",
            ),
        ),
        *build(
            "submission",
            models.Index(
                condition=models.Q(("refused_at__isnull", False)),
                fields=["workflow", "reference", "refused_at"],
                name="submission_set_aside",
            ),
        ),
        remove("submission", "submission_open"),
        remove("submission", "submission_refused"),
        migrations.RunSQL("RESET lock_timeout; RESET statement_timeout", migrations.RunSQL.noop),
    ]
