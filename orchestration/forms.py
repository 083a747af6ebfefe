"""What operators may ask for: the filters of the list of tasks, and a resubmission."""

from collections.abc import Iterable
from typing import Any, cast

from django import forms

from . import registry
from .queries import Filters
from .states import TaskState

LONGEST_REASON = 500


def _any_or(names: Iterable[str]) -> list[tuple[str, str]]:
    return [("", "any"), *((name, name) for name in sorted(set(names)))]


class TaskFilters(forms.Form):
    """Which tasks to list; every field may be left out. Sent with GET, so it is in the address."""

    state = forms.ChoiceField(choices=[("", "any"), *TaskState.choices], required=False)
    workflow = forms.ChoiceField(required=False)
    step = forms.ChoiceField(required=False, label="At step")
    agent = forms.ChoiceField(required=False, label="At agent")
    reference = forms.CharField(
        max_length=100,
        required=False,
        label="Reference begins with",
        widget=forms.TextInput(
            attrs={"type": "search", "autocomplete": "off", "spellcheck": "false"}
        ),
    )
    alert = forms.IntegerField(
        required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput
    )
    overdue = forms.BooleanField(required=False, label="Only overdue")
    before = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        workflows = registry.workflows.values()
        steps = (step.name for workflow in workflows for step in workflow.steps)
        for name, names in (
            ("workflow", registry.workflows),
            ("step", steps),
            ("agent", registry.agents),
        ):
            cast("forms.ChoiceField", self.fields[name]).choices = _any_or(names)

    def filters(self) -> Filters | None:
        """Return what is asked for, or None where it makes no sense."""
        return Filters(**self.cleaned_data) if self.is_valid() else None


class Resubmission(forms.Form):
    """An operator's wish to have a failed step tried again, and why."""

    attempt = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="Why it should work now",
        help_text="Kept in the task's history.",
        error_messages={
            "required": "Say why: the next one to look at this task will want to know."
        },
    )
