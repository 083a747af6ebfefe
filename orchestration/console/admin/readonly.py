"""Read-only lists of rows, at the same cost however many rows there are, and their filters."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from ... import registry
from ...database.capped_counts import CappedPaginator
from ...states import StepState
from .filters import Base, FilteredAdmin


class ReadOnlyAdmin(FilteredAdmin):
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

    def lookups(self, _request: HttpRequest, _model_admin: Base) -> list[tuple[str, str]]:
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
        return [StepState.ERROR.value, StepState.PROCESSING.value, StepState.AWAITING.value]
