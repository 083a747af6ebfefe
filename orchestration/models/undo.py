"""Requests that tasks be undone: from the supervisor, for a scheduler (P11)."""

from django.db import models

from .fields import DatabaseNow
from .step import Step
from .task import Task

UNDO_REQUESTED = "EXISTS (SELECT FROM orchestration_undorequest)"


class UndoRequest(models.Model):
    """The supervisor asks that a task be undone, for a step that failed or was not mended in time.

    A scheduler takes it: it begins the undo, or sets the step to error if something forbids that. Until
    then a step that failed waits; one that was not mended stays in error.
    """

    step = models.OneToOneField(Step, models.CASCADE, primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE)
    attempt = models.IntegerField(
        null=True, help_text="That of the step; a request for an earlier one undoes nothing."
    )
    unmended = models.BooleanField(help_text="It is in error, and was not mended in time.")
    requested_at = models.DateTimeField(db_default=DatabaseNow(), db_index=True)
    requested_by = models.CharField(max_length=100, help_text="The supervisor.")
    reason = models.TextField()

    def __str__(self) -> str:
        return f"undo of {self.task_id} for step {self.step_id}"
