"""What admins adjust: the policies of the agents and of the supervisors."""

from dataclasses import replace
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import ModelAdmin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import URLPattern
from simple_history.admin import SimpleHistoryAdmin
from simple_history.template_utils import HistoricalRecordContextHelper

from ..models import Policy, SupervisorPolicy


class Changes(HistoricalRecordContextHelper):  # type: ignore[misc] # untyped library
    """What changed between two versions, without the time stamp, which always does."""

    def context_for_delta_changes(self, delta: Any) -> list[dict[str, Any]]:
        """Return the changes as the history's page shows them: field, old, new."""
        kept = [change for change in delta.changes if change.field != "updated_at"]
        told: list[dict[str, Any]] = super().context_for_delta_changes(replace(delta, changes=kept))
        return told


class SettingAdmin(SimpleHistoryAdmin):  # type: ignore[misc] # untyped library
    """A row to be changed, with its history; neither added nor deleted."""

    actions = None
    object_history_list_template = "admin/orchestration/history_list.html"

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Refuse: the engine makes the rows that its agents need."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Refuse: an agent without its row cannot be called."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """Leave out the pages that bring an old version back: whoever wants it sets it again.

        simple_history's page lets anybody who may *view* a row post an old version of it.
        """
        urls: list[URLPattern] = ModelAdmin.get_urls(self)
        return urls

    def revert_disabled(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Say so on the history's page too."""
        return True

    def get_historical_record_context_helper(
        self, _request: HttpRequest, historical_record: Any
    ) -> Changes:
        """Return what describes one version's changes."""
        return Changes(self.model, historical_record)


@admin.register(Policy)
class PolicyAdmin(SettingAdmin):
    """How each agent is called, and what happens when that fails."""

    list_display = (
        "agent",
        "time_allowed",
        "call_timeout",
        "tries",
        "failure_threshold",
        "backoff",
        "backoff_cap",
        "window",
        "updated_at",
    )
    readonly_fields = ("agent", "updated_at")
    fieldsets = (
        (None, {"fields": ("agent", "updated_at")}),
        (
            "One attempt",
            {
                "fields": ("time_allowed", "call_timeout", "tries"),
                "description": "An attempt is one request to the agent. Within the time allowed "
                "the agent calls the remote service, more than once if a call fails. Past it, the "
                "attempt counts as failed and its reply is not accepted any more.",
            },
        ),
        (
            "After a failed attempt",
            {
                "fields": (
                    "failure_threshold",
                    "backoff",
                    "backoff_cap",
                    "past_threshold",
                    "extended_wait",
                    "rounds",
                    "on_rejection",
                    "mend_within",
                ),
                "description": "The supervisor has the step tried again after a wait that doubles "
                "each time, until the threshold. A failure while the gate is not open is not "
                "counted: it is the service's, not the step's.",
            },
        ),
        (
            "Undo and keys",
            {
                "fields": ("undo_threshold", "key_memory"),
                "description": "Undoing has more patience: what it leaves half done is worse.",
            },
        ),
        (
            "Capacity",
            {
                "fields": ("window", "rate"),
                "description": "Steps beyond the window wait without any deadline running.",
            },
        ),
        (
            "The gate",
            {
                "fields": (
                    "breaker_calls",
                    "breaker_failures",
                    "breaker_share",
                    "breaker_pause",
                    "breaker_pause_cap",
                ),
                "description": "When too many of the last attempts failed, the gate shuts: steps "
                "wait, and nothing is counted as failed. After a pause one probe goes; when it "
                "succeeds, the backlog is let through step by step.",
            },
        ),
    )


@admin.register(SupervisorPolicy)
class SupervisorPolicyAdmin(SettingAdmin):
    """How the supervisors work."""

    list_display = ("__str__", "interval", "updated_at")
    readonly_fields = ("updated_at",)
    fields = (
        "interval",
        "oldest_waiting",
        "undo_stuck",
        "status_undelivered",
        "audit_every",
        "approve_items",
        "approve_sum",
        "updated_at",
    )
