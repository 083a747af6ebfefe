"""What only the engine writes: rows to look at."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import ModelAdmin
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from .. import alerts, registry
from ..models import (
    Alert,
    Attempt,
    AuditRun,
    ClockJump,
    DeadLetter,
    Event,
    Gate,
    Hold,
    JumpedTime,
    Lease,
    Operation,
    OperationItem,
    SavedView,
    StatusMessage,
    Step,
    Submission,
    Task,
    TaskRequest,
    UndoRequest,
    Worker,
)
from ..states import StepState

if TYPE_CHECKING:  # generic for the type checker only
    RowsAdmin = ModelAdmin[Any]
    RowsPaginator = Paginator[Any]
else:
    RowsAdmin, RowsPaginator = ModelAdmin, Paginator

COUNT_CAP = 10_000  # a list of millions is not counted to its end: nobody pages that far


class CappedPaginator(RowsPaginator):
    """Pages of a list that may hold millions: counts no further than the cap."""

    @cached_property
    def count(self) -> int:
        """Return how many rows there are, the cap if there are more."""
        rows = self.object_list
        return rows[:COUNT_CAP].count() if isinstance(rows, QuerySet) else len(rows)


class ReadOnlyAdmin(RowsAdmin):
    """Rows to look at. Lists cost the same however many rows there are."""

    actions: Sequence[str] | None = None
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Refuse."""
        return False


class DeclaredFilter(admin.SimpleListFilter):
    """A choice among declared names: which there are is not asked of the table."""

    names: Sequence[str] = ()

    def declared(self) -> Sequence[str]:
        """Return the names to choose from."""
        raise NotImplementedError

    def lookups(self, _request: HttpRequest, _model_admin: RowsAdmin) -> list[tuple[str, str]]:
        """Return the choices."""
        return [(name, name) for name in sorted(self.declared())]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Narrow the list to the chosen name."""
        if name := self.value():
            return queryset.filter(**{str(self.parameter_name): name})
        return queryset


class WorkflowFilter(DeclaredFilter):
    """By workflow."""

    title = parameter_name = "workflow"

    def declared(self) -> Sequence[str]:
        """Return the workflows."""
        return list(registry.workflows)


class LiveStateFilter(DeclaredFilter):
    """By a state of few steps among millions: those that an index finds."""

    title = "state"
    parameter_name = "process_state"

    def declared(self) -> Sequence[str]:
        """Return the states."""
        return [StepState.ERROR.value, StepState.PROCESSING.value]


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    """Tasks."""

    list_display = ("id", "workflow", "reference", "state", "overdue", "created_at", "ended_at")
    list_filter = ("state", WorkflowFilter)
    search_fields = ("reference__startswith",)
    ordering = ("-id",)


@admin.register(Step)
class StepAdmin(ReadOnlyAdmin):
    """Steps."""

    list_display = (
        "id",
        "task_id",
        "name",
        "agent",
        "process_state",
        "attempt",
        "failure_count",
        "error_code",
    )
    list_filter = (LiveStateFilter,)
    ordering = ("-id",)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Attempts."""

    list_display = ("id", "step_id", "number", "outcome", "error_code", "agent", "ended_at")
    ordering = ("-id",)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Events."""

    list_display = ("at", "kind", "task_id", "step_id", "attempt", "actor", "reason")
    ordering = ("-id",)


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

    @admin.action(description="Acknowledge: I take care of it", permissions=["acknowledge"])
    def acknowledge(self, request: HttpRequest, chosen: QuerySet[Alert]) -> None:
        """Record who has taken care of the chosen alerts, unless somebody already has."""
        done = alerts.acknowledge(
            chosen.values_list("id", flat=True), by=request.user.get_username()
        )
        self.message_user(request, f"Acknowledged: {done} of {len(chosen)}.")


@admin.register(Submission)
class SubmissionAdmin(ReadOnlyAdmin):
    """Submissions that are not tasks yet."""

    list_display = ("id", "workflow", "reference", "created_at", "refused_at", "reason")
    list_filter = (("refused_at", admin.EmptyFieldListFilter),)
    ordering = ("-id",)


@admin.register(StatusMessage)
class StatusMessageAdmin(ReadOnlyAdmin):
    """Status messages that their application has not taken yet."""

    list_display = ("id", "reply_to", "task_id", "number", "kind", "created_at")
    ordering = ("-id",)


@admin.register(TaskRequest)
class TaskRequestAdmin(ReadOnlyAdmin):
    """What applications asked for about their tasks."""

    list_display = ("id", "what", "workflow", "reference", "created_at", "done_at", "refusal")
    list_filter = ("what", ("done_at", admin.EmptyFieldListFilter))
    ordering = ("-id",)


@admin.register(UndoRequest)
class UndoRequestAdmin(ReadOnlyAdmin):
    """Tasks that the supervisor asks schedulers to undo."""

    list_display = ("step", "task", "requested_at", "requested_by", "reason")
    list_filter = ("unmended",)
    list_select_related = ("step", "task")
    ordering = ("requested_at",)


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    """Messages between schedulers and agents that failed by themselves."""

    list_display = ("id", "queue", "tries", "retry_at", "created_at", "reason")
    list_filter = (("retry_at", admin.EmptyFieldListFilter),)
    ordering = ("-id",)


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Processes."""

    list_display = ("instance", "queue", "clock_offset", "started_at", "seen_at")
    ordering = ("queue", "instance")


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    """Who leads."""

    list_display = ("name", "holder", "epoch", "renewed_at", "expires_at")


@admin.register(ClockJump)
class ClockJumpAdmin(ReadOnlyAdmin):
    """Jumps of the database's clock."""

    list_display = ("at", "seconds", "by")
    ordering = ("-id",)


@admin.register(JumpedTime)
class JumpedTimeAdmin(ReadOnlyAdmin):
    """Times that a jump has yet to move: their rows are locked."""

    list_display = ("kind", "key", "field", "was", "becomes")
    ordering = ("id",)


@admin.register(Gate)
class GateAdmin(ReadOnlyAdmin):
    """Whether agents may be sent requests, as the engine has it; what people do is a hold."""

    list_display = ("agent", "state", "since", "probe_at", "trips", "allowance", "paused_until")
    ordering = ("agent",)


@admin.register(Hold)
class HoldAdmin(ReadOnlyAdmin):
    """What keeps steps waiting, and what did."""

    list_display = ("target", "cause", "reason", "actor", "since", "until", "released_by")
    list_filter = ("scope", "cause", ("until", admin.EmptyFieldListFilter))
    ordering = ("-id",)


@admin.register(AuditRun)
class AuditRunAdmin(ReadOnlyAdmin):
    """What the auditor found."""

    list_display = ("started_at", "ended_at", "by", "tasks", "violations")
    ordering = ("-id",)


@admin.register(Operation)
class OperationAdmin(ReadOnlyAdmin):
    """Bulk operations."""

    list_display = ("id", "act", "state", "actor", "items", "fixed", "skipped", "created_at")
    list_filter = ("act", "state")
    ordering = ("-id",)


@admin.register(OperationItem)
class OperationItemAdmin(ReadOnlyAdmin):
    """What became of each item of an operation."""

    list_display = ("id", "operation_id", "task_id", "step_id", "attempt", "state", "reason")
    ordering = ("-id",)


@admin.register(SavedView)
class SavedViewAdmin(ReadOnlyAdmin):
    """Searches that operators keep; they save and delete them at the list of tasks."""

    list_display = ("name", "owner", "shared", "query", "created_at")
    list_filter = ("shared",)
    list_select_related = ("owner",)
