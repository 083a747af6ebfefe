"""Failures grouped by cause: what an operator looks at instead of ten thousand lines."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from ..payloads.limits import LONGEST_CURRENCY
from ..states import Direction
from .alert import Severity
from .fields import DatabaseNow, one_of, state_field


class IncidentState(models.TextChoices):
    """Where a cause stands."""

    NEW = "new", "New"  # not acknowledged yet
    ACKNOWLEDGED = "known", "Acknowledged"  # a person works on it
    RETRYING = "retrying", "Retrying"  # what was resubmitted is under way
    RETURNED = "returned", "Returned"  # it failed again after it was resolved or resubmitted
    RESOLVED = "resolved", "Resolved"  # nothing suffers from it any more
    MUTED = "muted", "Muted"  # it is counted, and no notification is sent


class IncidentEventKind(models.TextChoices):
    """What happened to an incident: kept in the `detail` of its events."""

    OPENED = "opened", "First seen"
    RETURNED = "returned", "Returned"
    RESOLVED = "resolved", "Resolved"
    RETRIED = "retried", "Resubmitted"
    ACKNOWLEDGED = "known", "Acknowledged"
    ASSIGNED = "assigned", "Assigned"
    NOTE = "note", "Note"
    MUTED = "muted", "Muted"
    UNMUTED = "unmuted", "Unmuted"


class Incident(models.Model):
    """One cause of failures. Its counters are kept as failures happen; see `incidents.py`.

    What happens to steps is only ever added to the tallies; the leading supervisor adds these up
    here, so that many failures at once never wait for one row.
    """

    fingerprint = models.CharField(max_length=40, unique=True, help_text="What makes it one cause.")
    version = models.PositiveSmallIntegerField(help_text="Of the rules that make fingerprints.")
    workflow = models.CharField(max_length=60)
    step = models.CharField(max_length=60)
    direction = state_field(Direction, max_length=4, default=Direction.DO)
    agent = models.CharField(max_length=60)
    outcome = models.CharField(max_length=10, help_text="How the attempts ended: the error class.")
    code = models.CharField(max_length=100, blank=True)
    message = models.TextField(
        blank=True, help_text="What all messages have in common; the rest is taken out."
    )
    sample = models.TextField(blank=True, help_text="The first message, as it was.")
    title = models.CharField(max_length=300)
    severity = state_field(Severity, default=Severity.WARNING)
    state = state_field(IncidentState, default=IncidentState.NEW)

    failures = models.PositiveBigIntegerField(default=0, db_default=0)
    tasks = models.PositiveIntegerField(default=0, db_default=0, help_text="Tasks ever hit.")
    open_tasks = models.IntegerField(default=0, db_default=0, help_text="Tasks in error by it now.")
    at_risk = models.JSONField(
        default=dict, db_default={}, help_text="The value of those, by currency, in minor units."
    )
    removed_failures = models.PositiveBigIntegerField(
        default=0, db_default=0, help_text="Of the failures: those of tasks that were removed."
    )
    removed_tasks = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Of the tasks: those that were removed."
    )
    first_seen = models.DateTimeField(db_default=DatabaseNow())
    last_seen = models.DateTimeField(db_default=DatabaseNow())

    had_open_tasks = models.BooleanField(
        default=False,
        db_default=False,
        help_text="A task was in error by it since it was resolved.",
    )
    tried_at = models.DateTimeField(
        null=True, help_text="When something of it was last resubmitted."
    )
    returned_at = models.DateTimeField(null=True, help_text="Set until a person acknowledges it.")
    resolved_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, db_default="")
    muted_at = models.DateTimeField(null=True)
    muted_by = models.CharField(max_length=150, blank=True, db_default="")
    muted_until = models.DateTimeField(null=True, help_text="Empty: until it is unmuted.")
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="incidents"
    )

    class Meta:
        permissions = [("mute", "Can mute incidents")]
        constraints = [
            one_of("state", IncidentState, "incident_state_known"),
            one_of("severity", Severity, "incident_severity_known"),
        ]
        indexes = [
            models.Index(fields=["-open_tasks", "-id"], name="incident_by_impact"),
            models.Index(fields=["-last_seen", "-id"], name="incident_by_last"),
            # what the supervisor has to look at although nothing new was counted
            models.Index(
                fields=["id"], name="incident_live", condition=~Q(state__in=["resolved", "muted"])
            ),
        ]

    def __str__(self) -> str:
        return self.title


class IncidentHit(models.Model):
    """A step, and so a task, that an incident hit: once, however often it failed by it."""

    incident = models.ForeignKey(Incident, models.CASCADE, related_name="hits", db_index=False)
    step = models.ForeignKey("Step", models.CASCADE, related_name="hits")
    failures = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField(db_default=DatabaseNow())
    last_at = models.DateTimeField(db_default=DatabaseNow())
    retried_at = models.DateTimeField(null=True, help_text="When it was last resubmitted.")

    class Meta:
        verbose_name = "step of an incident"
        verbose_name_plural = "steps of incidents"
        constraints = [
            models.UniqueConstraint(fields=["incident", "step"], name="incident_hit_once"),
        ]
        indexes = [
            # what came of resubmissions
            models.Index(
                fields=["incident", "-retried_at"],
                name="incident_hit_retried",
                condition=Q(retried_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.step_id} hit by incident {self.incident_id}"


class IncidentTally(models.Model):
    """What one transaction has to add to an incident: written with it, added up by the leader."""

    incident = models.ForeignKey(Incident, models.CASCADE, related_name="tallies", db_index=False)
    failures = models.PositiveIntegerField(default=0, db_default=0)
    tasks = models.PositiveIntegerField(default=0, db_default=0)
    open_tasks = models.IntegerField(default=0, db_default=0)
    again = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Steps in error again after they were resubmitted."
    )
    retried = models.PositiveIntegerField(default=0, db_default=0, help_text="Steps resubmitted.")
    actor = models.CharField(
        max_length=150, blank=True, db_default="", help_text="Who resubmitted them."
    )
    currency = models.CharField(max_length=LONGEST_CURRENCY, blank=True, db_default="")
    value = models.BigIntegerField(default=0, db_default=0, help_text="Of the tasks in error.")
    at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        verbose_name = "pending count of an incident"
        verbose_name_plural = "pending counts of incidents"

    def __str__(self) -> str:
        return f"{self.failures} failures of incident {self.incident_id}"


class IncidentHour(models.Model):
    """How often an incident's cause struck within an hour: its trend."""

    incident = models.ForeignKey(Incident, models.CASCADE, related_name="hours", db_index=False)
    hour = models.DateTimeField()
    failures = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["incident", "hour"], name="incident_hour_once"),
        ]
        # what may be removed, oldest first
        indexes = [models.Index(fields=["hour"], name="incident_hour_by_time")]

    def __str__(self) -> str:
        return f"{self.failures} failures of incident {self.incident_id} in {self.hour:%F %H}"
