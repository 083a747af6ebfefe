"""The rows that only the engine writes: read-only lists, one entry for each model."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from ...incidents import actions
from ...models import (
    AccountTie,
    Alert,
    ApplicationRole,
    Attempt,
    AttemptEvidence,
    AuditRun,
    ClockJump,
    DeadLetter,
    Event,
    Export,
    ExternalId,
    Gate,
    GateRollUp,
    Hold,
    Incident,
    IncidentHit,
    IncidentHour,
    IncidentTally,
    Join,
    JumpedTime,
    Lease,
    Operation,
    OperationItem,
    RemovedTask,
    RollUpMark,
    SavedView,
    SoloAct,
    StatusMessage,
    Step,
    StepRollUp,
    Submission,
    Task,
    TaskRequest,
    TaskRollUp,
    UndoRequest,
    Wait,
    Worker,
)
from .columns import called, overdue, task_called
from .readonly import LiveStateFilter, ReadOnlyAdmin, WorkflowFilter


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    """Alerts."""

    list_display = (
        "title",
        "severity",
        "count",
        "first_seen",
        "last_seen",
        "acknowledged_by",
        "closed_at",
    )
    list_filter = (
        "severity",
        ("closed_at", admin.EmptyFieldListFilter),
        ("acknowledged_at", admin.EmptyFieldListFilter),
    )
    ordering = ("-id",)
    actions = ("acknowledge",)

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        """Ask for the permission that the action below names."""
        return request.user.has_perm("orchestration.acknowledge")

    @admin.action(description="Acknowledge selected alerts", permissions=["acknowledge"])
    def acknowledge(self, request: HttpRequest, chosen: QuerySet[Alert]) -> None:
        """Acknowledge those of the chosen alerts that are not yet acknowledged."""
        done = actions.acknowledge_alerts(
            chosen.values_list("id", flat=True), by=request.user.get_username()
        )
        self.message_user(request, f"Acknowledged: {done} of {len(chosen)}.")


def show(model: type[Model], *columns: str | Callable[..., str], **options: Any) -> None:
    """Register a read-only list of a model's rows, the newest first; `options` are Django's."""
    options = {"list_display": columns, "ordering": ("-id",), **options}
    admin.site.register(model, type(f"{model.__name__}Admin", (ReadOnlyAdmin,), options))


def empty(field: str) -> tuple[str, type[admin.FieldListFilter]]:
    """Return a filter by whether a field is empty."""
    return field, admin.EmptyFieldListFilter


# tasks
show(
    Task, called, "workflow", "state", overdue, "created_at", "ended_at", "reference",
    list_filter=("state", WorkflowFilter), search_fields=("reference__startswith",),
)  # fmt: skip
show(
    Step, "id", task_called, "name", "agent", "process_state", "attempt", "failure_count", "error_code",
    list_filter=(LiveStateFilter,), list_select_related=("task",),
)  # fmt: skip
show(Attempt, "id", "step_id", "number", "outcome", "error_code", "agent", "ended_at")
show(AttemptEvidence, "id", "step_id", "number", "status", "cut")
show(Event, "at", "kind", "task_id", "step_id", "attempt", "actor", "reason")
show(
    Hold, "target", "cause", "reason", "actor", "since", "until", "released_by",
    list_filter=("scope", "cause", empty("until")),
)  # fmt: skip
show(
    Wait, "step_id", "task_id", "agent", "external_id", "person", "signal", "awaited_at", "ends_by",
    "due_at", "look_at", "looks", "reminded", ordering=("-id",),
    search_fields=("external_id__startswith",), show_full_result_count=False,
)  # fmt: skip
show(Join, "id", "step_id", "task_id", "undo_below")
show(
    ExternalId, "external_id", "agent", "step_id", "task_id", "attempt", "accepted_at",
    ordering=("-id",), search_fields=("external_id__startswith",), show_full_result_count=False,
)  # fmt: skip
show(
    UndoRequest, "step", "task", "requested_at", "requested_by", "reason",
    list_filter=("unmended",), list_select_related=("step", "task"), ordering=("requested_at",),
)  # fmt: skip

# messages
show(
    Submission, "id", "workflow", "reference", "created_at", "refused_at", "reason",
    list_filter=(empty("refused_at"),),
)  # fmt: skip
show(StatusMessage, "id", "reply_to", "task_id", "number", "kind", "created_at")
show(
    TaskRequest, "id", "what", "workflow", "reference", "agent", "external_id", "created_at", "done_at",
    "refusal",
    list_filter=("what", empty("done_at")),
)  # fmt: skip
show(ApplicationRole, "role", "application", "workflows", ordering=("role",))
show(
    DeadLetter, "id", "queue", "tries", "retry_at", "created_at", "reason",
    list_filter=(empty("retry_at"),),
)  # fmt: skip
show(
    AccountTie, "account", "kind", "set_up_by", "at", "confirmed_at", "confirmed_by",
)  # fmt: skip
show(SoloAct, "account", "items", "money", "operation", "at")
show(
    Export, "actor", "what", "format", "rows", "personal", "at",
    list_filter=("personal",), ordering=("-at", "-id"),
)  # fmt: skip
show(RemovedTask, "key", "content", "removed_at", ordering=("key",))

# incidents
show(
    Incident, "title", "state", "severity", "failures", "tasks", "open_tasks", "last_seen",
    list_filter=("state", "severity"),
)  # fmt: skip
show(IncidentHit, "incident_id", "step_id", "failures", "first_at", "last_at", "retried_at")
show(IncidentTally, "incident_id", "failures", "tasks", "open_tasks", "retried", "again", "at")
show(IncidentHour, "incident_id", "hour", "failures")

# bulk operations, saved views, audits
show(
    Operation, "id", "act", "state", "actor", "items", "fixed", "skipped", "created_at",
    list_filter=("act", "state"),
)  # fmt: skip
show(OperationItem, "id", "operation_id", "task_id", "step_id", "attempt", "state", "reason")
show(
    SavedView, "name", "owner", "shared", "query", "created_at",
    list_filter=("shared",), list_select_related=("owner",),
)  # fmt: skip
show(AuditRun, "started_at", "ended_at", "by", "tasks", "violations")

# processes, gates and clocks
show(
    Worker, "instance", "queue", "clock_offset", "started_at", "seen_at",
    ordering=("queue", "instance"),
)  # fmt: skip
show(Lease, "name", "holder", "epoch", "renewed_at", "expires_at", ordering=())
show(
    Gate, "agent", "state", "since", "probe_at", "trips", "allowance", "paused_until",
    ordering=("agent",),
)  # fmt: skip
show(ClockJump, "at", "seconds", "by")
show(JumpedTime, "kind", "key", "field", "was", "becomes", ordering=("id",))

# what the charts are drawn from
show(
    TaskRollUp, "start", "span", "workflow", "created", "processed", "errors", "undone",
    list_filter=("span",), ordering=("span", "-start", "workflow"),
)  # fmt: skip
show(
    StepRollUp, "start", "span", "workflow", "step", "direction", "agent", "done", "failed",
    list_filter=("span",), ordering=("span", "-start", "workflow", "step"),
)  # fmt: skip
show(
    GateRollUp, "start", "span", "agent", "in_flight", "room", "waiting", "oldest", "blocked_samples",
    list_filter=("span",), ordering=("span", "-start", "agent"),
)  # fmt: skip
show(RollUpMark, "until", "noted_until", "epoch", ordering=())
