"""Looks at the children of a step that schedulers are asked for: all may have ended, or are to be undone."""

from django.db import models

from .step import Step
from .task import Task

JOINS_DUE = "EXISTS (SELECT FROM orchestration_join)"
ALL = 2**31 - 1  # beyond the position of any child


class Join(models.Model):
    """A scheduler is to look at the children of a step.

    Rows are added and removed, and never changed, so that tasks which end at the same time do not wait for
    each other. Several rows of one step are one look.
    """

    step = models.ForeignKey(
        Step,
        models.CASCADE,
        db_index=False,
        db_constraint=False,
        related_name="+",
        help_text="Whose children they are.",
    )
    task = models.ForeignKey(Task, models.CASCADE, db_constraint=False, related_name="+")
    undo_below = models.PositiveIntegerField(
        null=True, help_text="The children at positions below this are to be undone."
    )

    def __str__(self) -> str:
        return f"children of step {self.step_id}"
