"""Causes of failures, and what was done about them: rows to look at."""

from django.contrib import admin

from ..models import Incident, IncidentHit, IncidentHour, IncidentTally
from .records import ReadOnlyAdmin


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """Causes of failures."""

    list_display = ("title", "state", "severity", "failures", "tasks", "suffering", "last_seen")
    list_filter = ("state", "severity")
    ordering = ("-id",)


@admin.register(IncidentHit)
class IncidentHitAdmin(ReadOnlyAdmin):
    """Steps that incidents hit."""

    list_display = ("incident_id", "step_id", "failures", "first_at", "last_at", "retried_at")
    ordering = ("-id",)


@admin.register(IncidentTally)
class IncidentTallyAdmin(ReadOnlyAdmin):
    """What has yet to be added to incidents: empty but for a second."""

    list_display = ("incident_id", "failures", "tasks", "suffering", "retried", "again", "at")
    ordering = ("-id",)


@admin.register(IncidentHour)
class IncidentHourAdmin(ReadOnlyAdmin):
    """How often incidents struck, by the hour."""

    list_display = ("incident_id", "hour", "failures")
    ordering = ("-id",)
