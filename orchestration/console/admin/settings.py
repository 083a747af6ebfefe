"""What admins adjust: the policies of the agents and of the supervisors."""

from dataclasses import replace
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from simple_history.admin import SimpleHistoryAdmin
from simple_history.template_utils import HistoricalRecordContextHelper

from ...models import FairnessWeight, Policy, RetentionPolicy, SupervisorPolicy
from .bounds import REASON, SettingForm
from .columns import measured
from .concurrent_admin import ConcurrentAdmin
from .policy_replay import WhatIf, what_if
from .reverting import Revertible
from .step_bounds import PolicyForm
from .what_if_admin import WhatIfAdmin


class VersionChanges(HistoricalRecordContextHelper):  # type: ignore[misc] # untyped library
    """What changed between two versions, without the time stamp, which always does."""

    def context_for_delta_changes(self, delta: Any) -> list[dict[str, Any]]:
        """Return the changes as the history's page shows them: field, old, new."""
        changes = [change for change in delta.changes if change.field != "updated_at"]
        shown: list[dict[str, Any]] = super().context_for_delta_changes(
            replace(delta, changes=changes)
        )
        return shown


class SettingAdmin(ConcurrentAdmin, Revertible, SimpleHistoryAdmin):  # type: ignore[misc] # untyped library
    """Rows to be changed, with their history; earlier values can be set again."""

    actions = None
    form = SettingForm
    object_history_list_template = "admin/orchestration/history_list.html"

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Ask for a reason below the values, if they may be changed."""
        shown = super().get_fieldsets(request, obj)
        may = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return [*shown, ("Why", {"fields": (REASON,)})] if may else shown

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Keep the reason with the version in the history."""
        if reason := form.cleaned_data.get(REASON):
            obj._change_reason = reason  # noqa: SLF001 - documented by simple_history
        super().save_model(request, obj, form, change)

    def revert_disabled(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Say so on the history's page too."""
        return True

    def get_historical_record_context_helper(
        self, _request: HttpRequest, historical_record: Any
    ) -> VersionChanges:
        """Return what describes one version's changes."""
        return VersionChanges(self.model, historical_record)


class FixedSettingAdmin(SettingAdmin):
    """A row to be changed, with its history; neither added nor deleted."""

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Refuse: the engine makes the rows that its agents need."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Refuse: an agent without its row cannot be called."""
        return False


@admin.register(FairnessWeight)
class FairnessWeightAdmin(SettingAdmin):
    """What shares of the turns the fairness keys have."""

    list_display = ("key", "weight", "updated_at")
    search_fields = ("key__startswith",)
    fields = ("key", "weight", "updated_at")

    def get_readonly_fields(
        self, _request: HttpRequest, obj: Model | None = None
    ) -> tuple[str, ...]:
        """Keep the key: another key's weight is another row."""
        return ("key", "updated_at") if obj else ("updated_at",)


@admin.register(Policy)
class PolicyAdmin(WhatIfAdmin, FixedSettingAdmin):
    """How each agent is called, and what happens when that fails."""

    form = PolicyForm
    list_display = (
        "agent",
        measured("time_allowed", "s"),
        measured("call_timeout", "s"),
        measured("tries", "calls"),
        measured("failure_threshold", "attempts"),
        measured("backoff", "s"),
        measured("backoff_cap", "s"),
        measured("window", "requests"),
        "updated_at",
    )
    ordering = ("agent",)
    readonly_fields = ("agent", "updated_at")
    fieldsets = (
        (None, {"fields": ("agent", "updated_at")}),
        (
            "One attempt",
            {
                "fields": ("time_allowed", "call_timeout", "tries"),
                "description": "An attempt is one request to the agent. Within the time allowed "
                "the agent calls the remote service, and repeats failed calls. After that time, the "
                "attempt counts as failed, and a late reply is refused.",
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
                    "max_extended_waits",
                    "on_rejection",
                    "resolve_within",
                ),
                "description": "The supervisor retries the step after a wait that doubles with each "
                "failure, up to the threshold. Failures while the circuit breaker is open "
                "are not counted: they are failures of the service, not of the step.",
            },
        ),
        (
            "Undo and keys",
            {
                "fields": ("undo_threshold", "key_memory"),
                "description": "Undo steps have a higher threshold, because a half-done undo is worse.",
            },
        ),
        (
            "Capacity",
            {
                "fields": ("window", "rate", "aged_after"),
                "description": "Steps beyond the window wait; their deadlines do not run.",
            },
        ),
        (
            "The circuit breaker",
            {
                "fields": (
                    "breaker_calls",
                    "breaker_failures",
                    "breaker_share",
                    "breaker_pause",
                    "breaker_pause_cap",
                    "retry_after_cap",
                ),
                "description": "When too many recent attempts fail, the breaker opens: steps wait and "
                "are not counted as failed. After a pause it is half-open: probes are sent one at "
                "a time. When a probe succeeds, the load increases until the breaker is closed.",
            },
        ),
    )

    def replayed(self, row: Policy, typed: Any) -> WhatIf:
        """Return what the typed values would have done to what the agent's steps did."""
        return what_if(row, typed)


@admin.register(SupervisorPolicy)
class SupervisorPolicyAdmin(FixedSettingAdmin):
    """How the supervisors work."""

    list_display = ("__str__", "interval", "updated_at")
    readonly_fields = ("updated_at",)
    fields = (
        "interval",
        "oldest_waiting",
        "undo_stuck",
        "status_undelivered",
        "audit_every",
        "whole_audit_every",
        "keep_records_days",
        "approve_items",
        "approve_sum",
        "updated_at",
    )


@admin.register(RetentionPolicy)
class RetentionPolicyAdmin(FixedSettingAdmin):
    """How long each workflow's ended tasks are kept."""

    list_display = ("workflow", measured("keep_days", "days"), "updated_at")
    ordering = ("workflow",)
    readonly_fields = ("workflow", "updated_at")
    fields = ("workflow", "keep_days", "updated_at")
