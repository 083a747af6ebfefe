"""What admins adjust for one step of a workflow: where it differs from its agent's policy."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest
from django.utils.html import format_html

from ... import policies, registry
from ...models import StepPolicy
from ...policies import StepKey
from .policy_replay import WhatIf, what_if_of_step
from .settings import FixedSettingAdmin
from .step_bounds import StepPolicyForm, in_words
from .what_if_admin import WhatIfAdmin


def in_force(name: str, unit: str = "") -> Callable[[StepPolicy], str]:
    """Return a column with the threshold in force, marked if it is the step's own."""

    @admin.display(description=name.replace("_", " ") + (f" ({unit})" if unit else ""))
    def column(row: Any) -> str:
        words = in_words(getattr(row.in_force, name))
        return (
            format_html("<strong data-own>{} (own)</strong>", words) if name in row.own else words
        )

    column.__name__ = name  # which the column's class has
    return column


@admin.register(StepPolicy)
class StepPolicyAdmin(WhatIfAdmin, FixedSettingAdmin):
    """The thresholds of each step that calls an agent."""

    form = StepPolicyForm
    list_display = (
        "workflow",
        "step",
        "called",
        in_force("failure_threshold", "attempts"),
        in_force("past_threshold"),
        in_force("extended_wait", "s"),
        in_force("max_extended_waits", "waits"),
        in_force("on_rejection"),
        in_force("resolve_within", "s"),
        in_force("undo_threshold", "attempts"),
        "updated_at",
    )
    list_display_links = ("workflow", "step")
    list_filter = ("workflow",)
    search_fields = ("workflow", "step", "agent")
    readonly_fields = ("workflow", "step", "called", "updated_at")
    fieldsets = (
        (
            None,
            {
                "fields": ("workflow", "step", "called", "updated_at"),
                "description": "What is left empty is as the policy of the agent says. Timeouts, tries, "
                "waits between attempts, capacity and the circuit breaker are the agent's alone.",
            },
        ),
        (
            "After failed attempts",
            {
                "fields": (
                    "failure_threshold",
                    "past_threshold",
                    "extended_wait",
                    "max_extended_waits",
                )
            },
        ),
        (
            "After a rejection",
            {
                "fields": ("on_rejection", "resolve_within"),
                "description": "What a workflow declares for the code of a refusal goes first.",
            },
        ),
        ("Undo", {"fields": ("undo_threshold",)}),
    )

    @admin.display(description="agent", ordering="agent")
    def called(self, row: StepPolicy) -> str:
        """Return the agent that a step calls, and whether a workflow still has the step."""
        workflow = registry.workflows.get(row.workflow)
        steps = workflow.steps if workflow else ()
        declared = any((step.name, step.agent) == (row.step, row.agent) for step in steps)
        return row.agent if declared else f"{row.agent} (step no longer declared)"

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Return the list with the thresholds in force: two queries for any number of rows."""
        shown = super().get_changelist_instance(request)
        rows: list[Any] = list(shown.result_list)
        keys = {row.pk: StepKey(row.workflow, row.step, row.agent) for row in rows}
        known = policies.of_steps(keys.values())
        for row in rows:
            row.in_force = known[keys[row.pk]]
        shown.result_list = rows
        return shown

    def replayed(self, row: StepPolicy, typed: Any) -> WhatIf:
        """Return what the typed values would have done to what this step did."""
        return what_if_of_step(row, typed)
