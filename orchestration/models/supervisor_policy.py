"""How the supervisors and housekeepers work."""

from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords


class SupervisorPolicy(models.Model):
    """How the supervisors work: one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    interval = models.FloatField(
        default=1.0, help_text="Seconds between two sweeps of the leading supervisor."
    )
    oldest_waiting = models.FloatField(
        default=300.0, help_text="Seconds a step may wait for its claim before an alert is raised."
    )
    undo_stuck = models.FloatField(
        default=900.0, help_text="Seconds an undo may take before an alert is raised."
    )
    status_undelivered = models.FloatField(
        default=300.0, help_text="Seconds a status message may wait before an alert is raised."
    )
    audit_every = models.FloatField(
        default=3600.0,
        help_text="Seconds between two audits of what has changed since the last one; 0 for none.",
    )
    whole_audit_every = models.FloatField(
        default=86_400.0,
        db_default=86_400.0,
        help_text="Seconds between two audits of everything, with the partners' ledgers; 0 for none.",
    )
    keep_records_days = models.FloatField(
        default=365.0,
        db_default=365.0,
        null=True,
        blank=True,
        help_text="Days for which closed alerts, audit runs, ended holds and requests that were carried "
        "out are kept; empty: for ever.",
    )
    approve_items = models.PositiveIntegerField(
        default=1000,
        db_default=1000,
        null=True,
        blank=True,
        help_text="Items that one person may act on alone within 24 hours; what goes beyond needs "
        "a second person. Empty for no limit.",
    )
    approve_sum = models.PositiveBigIntegerField(
        default=1_000_000,
        db_default=1_000_000,
        null=True,
        blank=True,
        help_text="Sum in one currency, in minor units (cents), that one person may move alone "
        "within 24 hours. Empty for no limit.",
    )
    updated_at = models.DateTimeField(auto_now=True)
    history = HistoricalRecords()

    class Meta:
        verbose_name = verbose_name_plural = "supervisor policy"
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="supervisor_policy_single"),
            models.CheckConstraint(
                condition=Q(interval__gte=0.2, interval__lte=60),
                name="supervisor_policy_interval",
                violation_error_message=(
                    "The supervisor's interval must be between 0.2 and 60 seconds: more often "
                    "is only overhead, more rarely lets failed steps lie."
                ),
            ),
            models.CheckConstraint(
                condition=Q(oldest_waiting__gt=0, undo_stuck__gt=0, status_undelivered__gt=0)
                & Q(audit_every__gte=0),
                name="supervisor_policy_limits",
                violation_error_message="Limits are more than 0 seconds.",
            ),
            models.CheckConstraint(
                condition=Q(whole_audit_every__gte=0)
                & (Q(keep_records_days__isnull=True) | Q(keep_records_days__gte=1)),
                name="supervisor_policy_records",
                violation_error_message=(
                    "Records are kept for at least a day, and audits are 0 or more seconds apart."
                ),
            ),
        ]

    def __str__(self) -> str:
        return "Supervisor"
