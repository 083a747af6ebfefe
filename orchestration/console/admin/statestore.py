"""The state store by the pattern's own names, to look at."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ... import registry
from ...models import StateStore
from ...models.statestore import ProcessState
from ...states import FINAL_TASK_STATES, StepState, TaskState
from .filters import Base
from .readonly import DeclaredFilter, ReadOnlyAdmin, WorkflowFilter

# By the engine's states, as these are what indexes are about; waiting steps are found by their tasks.
UNFINISHED = [state for state in TaskState if state not in FINAL_TASK_STATES]
FILTERS: dict[str, Q] = {
    ProcessState.PENDING: Q(
        state__in=[StepState.WAITING, StepState.PENDING], task_state__in=UNFINISHED
    ),
    # one condition for each index: step_expiry and step_awaiting
    ProcessState.PROCESSING: Q(state=StepState.PROCESSING) | Q(state=StepState.AWAITING),
    ProcessState.PROCESSED: Q(
        state__in=[StepState.PROCESSED, StepState.SKIPPED, StepState.CANCELLED]
    ),
    ProcessState.ERROR: Q(state=StepState.ERROR),
}


class ProcessStateFilter(admin.SimpleListFilter):
    """By the pattern's four words."""

    title = "ProcessState"
    parameter_name = "process_state"

    def lookups(self, _request: HttpRequest, _model_admin: Base) -> list[tuple[str, str]]:
        """Return the choices."""
        return list(ProcessState.choices)

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Narrow the list to the chosen word; an unknown one narrows nothing."""
        return queryset.filter(FILTERS.get(self.value() or "", Q()))


class AgentFilter(DeclaredFilter):
    """By agent."""

    title = parameter_name = "agent"

    def declared(self) -> Sequence[str]:
        """Return the agents."""
        return list(registry.agents)


@admin.register(StateStore)
class StateStoreAdmin(ReadOnlyAdmin):
    """The state store: a record for each step."""

    list_display = (
        "order_id",
        "step",
        "direction",
        "process_state",
        "locked_by",
        "complete_by",
        "failure_count",
        "attempt",
        "agent",
        "workflow",
        "task",
    )
    list_filter = (ProcessStateFilter, AgentFilter, WorkflowFilter)
    search_fields = ("order_id__startswith",)
    ordering = ("-id",)
    fields = (*list_display, "state", "task_state", "id")
    readonly_fields = ("task",)

    @admin.display(description="Task")
    def task(self, record: StateStore) -> SafeString:
        """Return a link to the task's page on the operators' dashboard."""
        address = reverse("ops:task", args=[record.task_id])
        return format_html('<a href="{}">{}</a>', address, record.task_id)
