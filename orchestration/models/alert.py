"""What an operator must know."""

from django.db import models
from django.db.models import Q

from .fields import DatabaseNow, state_field


class Severity(models.TextChoices):
    """How urgent an alert is."""

    WARNING = "warning", "Warning"  # it may heal, or it may wait until tomorrow
    CRITICAL = "critical", "Critical"  # nothing more happens until a person acts


class Alert(models.Model):
    """One cause that an operator must know of, however many steps it stops.

    Open until `closed_at`; at most one open alert per fingerprint, so 10,000 failures of one cause
    are one line to read.
    """

    fingerprint = models.CharField(max_length=300, help_text="Identifies the cause.")
    incident = models.ForeignKey(
        "Incident",
        models.PROTECT,
        null=True,
        related_name="alerts",
        help_text="The incident of the failed steps.",
    )
    severity = state_field(Severity)
    title = models.CharField(max_length=300)
    detail = models.TextField(blank=True)
    count = models.PositiveIntegerField(default=1, help_text="How often the cause occurred.")
    first_seen = models.DateTimeField(db_default=DatabaseNow())
    last_seen = models.DateTimeField(db_default=DatabaseNow())
    closed_at = models.DateTimeField(null=True, blank=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, db_default="")

    class Meta:
        permissions = [("acknowledge", "Can acknowledge alerts")]
        constraints = [
            models.UniqueConstraint(
                fields=["fingerprint"], condition=Q(closed_at__isnull=True), name="alert_once_open"
            ),
        ]
        indexes = [
            models.Index(
                fields=["-last_seen"], name="alert_open", condition=Q(closed_at__isnull=True)
            ),
            # what may be removed, oldest first
            models.Index(
                fields=["closed_at"], name="alert_closed", condition=Q(closed_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return self.title
