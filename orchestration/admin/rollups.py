"""The roll-ups: what the charts are drawn from, to look at."""

from django.contrib import admin

from ..models import GateRollUp, RollUpMark, StepRollUp, TaskRollUp
from .records import ReadOnlyAdmin


@admin.register(TaskRollUp)
class TaskRollUpAdmin(ReadOnlyAdmin):
    """What the charts of tasks are drawn from."""

    list_display = ("start", "span", "workflow", "created", "processed", "errors", "undone")
    list_filter = ("span",)
    ordering = ("span", "-start", "workflow")


@admin.register(StepRollUp)
class StepRollUpAdmin(ReadOnlyAdmin):
    """What the charts of attempts are drawn from."""

    list_display = ("start", "span", "workflow", "step", "direction", "agent", "done", "failed")
    list_filter = ("span",)
    ordering = ("span", "-start", "workflow", "step")


@admin.register(GateRollUp)
class GateRollUpAdmin(ReadOnlyAdmin):
    """What the charts of gates are drawn from."""

    list_display = ("start", "span", "agent", "in_flight", "room", "waiting", "oldest", "shut")
    list_filter = ("span",)
    ordering = ("span", "-start", "agent")


@admin.register(RollUpMark)
class RollUpMarkAdmin(ReadOnlyAdmin):
    """How far has been counted."""

    list_display = ("until", "noted_until", "epoch")
