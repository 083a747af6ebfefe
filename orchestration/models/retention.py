"""How long ended tasks are kept, and what remains of those that were removed."""

from django.db import models
from django.db.models import Func, Q
from simple_history.models import HistoricalRecords

YEAR = 365.0


def content_hash(text: str) -> str:
    """Return the SQL expression of a text's hash, or of that of an input: half of SHA-256, as a UUID."""
    return f"encode(substring(sha256(convert_to(({text})::text, 'UTF8')) for 16), 'hex')::uuid"


def removal_key(workflow: str, reference: str) -> str:
    """Return the SQL expression of a removed task's key: a hash, so that rows stay small."""
    return content_hash(f"{workflow} || chr(10) || {reference}")


class ContentHash(Func):
    """The hash of a field."""

    template = content_hash("%(expressions)s")
    output_field = models.UUIDField()


class RemovalKey(ContentHash):
    """A removed task's key, of two fields."""

    arg_joiner = " || chr(10) || "


class RetentionPolicy(models.Model):
    """How long the ended tasks of one workflow are kept.

    Below `keep_days` the housekeeper notes how far it has looked.
    """

    workflow = models.CharField(max_length=60, primary_key=True, editable=False)
    keep_days = models.FloatField(
        default=YEAR,
        null=True,
        blank=True,
        help_text="Days from a task's end to its removal, with all its history; empty: for ever.",
    )
    looked_until = models.DateTimeField(
        null=True, editable=False, help_text="Tasks that ended before this were looked at."
    )
    looked_anew = models.DateTimeField(
        null=True, editable=False, help_text="When it last began with the oldest task again."
    )
    more = models.BooleanField(
        default=False, db_default=False, editable=False, help_text="More of them are to be removed."
    )
    updated_at = models.DateTimeField(auto_now=True)
    history = HistoricalRecords(excluded_fields=["looked_until", "looked_anew", "more"])

    class Meta:
        verbose_name_plural = "retention policies"
        ordering = ["workflow"]
        constraints = [
            models.CheckConstraint(
                condition=Q(keep_days__isnull=True) | Q(keep_days__gte=1, keep_days__lte=36_500),
                name="retention_keep_days",
                violation_error_message=(
                    "Ended tasks are kept for at least a day, as replies and requests may still come, "
                    "and at most 100 years; leave it empty to keep them for ever."
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.workflow


class RemovedTask(models.Model):
    """What remains of a task that was removed: its reference stays taken.

    The same submission posted again is dropped, and one with other content refused, as while the task
    was there.
    """

    key = models.UUIDField(primary_key=True, help_text="Hash of workflow and reference.")
    content = models.UUIDField(help_text="Hash of the input.")
    removed_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.key)
