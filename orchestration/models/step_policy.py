"""What the business wants of one step of a workflow; what is empty is as its agent's policy says."""

from typing import Any

from django.db import models
from simple_history.models import HistoricalRecords

from ..decisions.step_policy import OF_STEPS
from .policy import Policy, bounds_of_steps


def _own(name: str) -> Any:
    """Return a column for a step's own value of a threshold: that of `Policy`, which may be empty."""
    field: models.Field[Any, Any] = Policy._meta.get_field(name)  # type: ignore[assignment] # noqa: SLF001
    *_, options = field.deconstruct()
    options.pop("db_default", None)
    return type(field)(**{**options, "default": None, "null": True, "blank": True})


class StepPolicy(models.Model):
    """The thresholds that a step has for itself. Empty: its agent's. All times are in seconds.

    What a service can bear is the same for all steps that call it, and stands in `Policy` alone.
    """

    workflow = models.CharField(max_length=60, editable=False)
    step = models.CharField(max_length=60, editable=False)
    agent = models.CharField(
        max_length=60, editable=False, help_text="The agent that the step calls as it is declared."
    )
    failure_threshold: "models.PositiveSmallIntegerField[int | None, int | None]" = _own(
        "failure_threshold"
    )
    past_threshold: "models.CharField[str | None, str | None]" = _own("past_threshold")
    extended_wait: "models.FloatField[float | None, float | None]" = _own("extended_wait")
    max_extended_waits: "models.PositiveSmallIntegerField[int | None, int | None]" = _own(
        "max_extended_waits"
    )
    on_rejection: "models.CharField[str | None, str | None]" = _own("on_rejection")
    resolve_within: "models.FloatField[float | None, float | None]" = _own("resolve_within")
    undo_threshold: "models.PositiveSmallIntegerField[int | None, int | None]" = _own(
        "undo_threshold"
    )
    updated_at = models.DateTimeField(auto_now=True)
    # a release may change the agent, which is not a setting
    history = HistoricalRecords(excluded_fields=["agent"])

    class Meta:
        verbose_name_plural = "step policies"
        ordering = ["workflow", "step"]
        constraints = [
            *bounds_of_steps("step_policy"),
            models.UniqueConstraint(fields=["workflow", "step"], name="step_policy_once"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow}/{self.step}"

    @property
    def own(self) -> dict[str, Any]:
        """Return the thresholds that the step has values of its own for."""
        values = {name: getattr(self, name) for name in OF_STEPS}
        return {name: value for name, value in values.items() if value is not None}
