"""Columns of lists: with their unit, and without a red cross for what is well."""

from collections.abc import Callable

from django.contrib import admin
from django.db.models import Model

from ...models import Step, Task

Column = Callable[[Model], str]


def measured(name: str, unit: str) -> Column:
    """Return a column with a field's number, and its unit in the head."""

    @admin.display(description=f"{name.replace('_', ' ')} ({unit})", ordering=name)
    def column(row: Model) -> str:
        value = getattr(row, name)
        return "" if value is None else f"{value:g}"

    column.__name__ = name  # which the column's class has
    return column


@admin.display(description="overdue", ordering="overdue")
def overdue(task: Model) -> str:
    """Say that a task is overdue, and nothing if it is not."""
    return "overdue" if getattr(task, "overdue", False) else ""


@admin.display(description="number", ordering="label")
def called(task: Task) -> str:
    """Return what people call a task, or how its id begins."""
    return task.label or f"{str(task.id)[:13]}…"


@admin.display(description="task")
def task_called(step: Step) -> str:
    """Return what people call the task of a step."""
    return called(step.task)
