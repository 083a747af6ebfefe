"""Forms for bulk operations: action, selection, reason and rate."""

import json
from typing import Any
from uuid import UUID

from django import forms

from ...agents import payload_schemas
from ...models.operation import Act
from .actions import ReasonForm, all_the_same
from .search import LONGEST_REASON

MOST_TASKS = 900  # chosen one by one; Django takes a form of a thousand fields
LONGEST_QUERY = 1_000


class Choosing(forms.Form):
    """An act and what it is to be done to: `task` any number of times, a `query`, or an `incident`."""

    act = forms.ChoiceField(choices=Act.choices)
    query = forms.CharField(max_length=LONGEST_QUERY, required=False)
    incident = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    sample = forms.IntegerField(min_value=1, max_value=1000, required=False)

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self._tasks: list[str] = data.getlist("task")

    def clean(self) -> dict[str, Any]:
        """Require exactly one selection."""
        known: dict[str, Any] = super().clean() or {}
        if known.get("query"):
            known["selection"] = {"query": known["query"]}
        elif known.get("incident"):
            known["selection"] = {"incident": known["incident"]}
        else:
            known["selection"] = {"tasks": self._ids()}
        return known

    def _ids(self) -> list[str]:
        if not self._tasks:
            raise forms.ValidationError("Select at least one task.")
        if len(self._tasks) > MOST_TASKS:
            raise forms.ValidationError(
                f"Select at most {MOST_TASKS:,} tasks one by one, or select all tasks that match a filter."
            )
        try:
            return [str(UUID(task)) for task in dict.fromkeys(self._tasks)]
        except ValueError as error:
            raise forms.ValidationError("This is not the id of a task.") from error


class ResultField(forms.CharField):
    """JSON that is typed in; an empty field stays empty."""

    def to_python(self, value: Any) -> Any:
        """Return the value that the text stands for."""
        text = super().to_python(value)
        try:
            return payload_schemas.parse(text) if text else None
        except payload_schemas.Invalid as error:
            raise forms.ValidationError(f"This is not JSON: {error}.") from None

    def prepare_value(self, value: Any) -> Any:
        """Return what the field shows: the typed text unchanged, or a formatted value."""
        if value is None or isinstance(value, str):
            return value or ""
        return json.dumps(value, ensure_ascii=False)


class Confirmation(ReasonForm):
    """The word that a dry run shall be done: why, at which rate, and whether to one first.

    `shown` is the number that the page showed: a second press of a page that was overtaken by a
    new look must not confirm what the user has not seen.
    """

    shown = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False)

    rate = forms.FloatField(
        min_value=0.01,
        max_value=1000,
        label="Rate limit (items/s)",
        widget=forms.NumberInput(attrs={"step": "any", "class": "number"}),
        error_messages={"required": "Enter the number of items per second."},
    )
    first = forms.ChoiceField(
        label="How many",
        choices=[("sample", "One first"), ("all", "All")],
        widget=forms.RadioSelect,
        error_messages={"required": "Choose whether to try one first."},
    )
    force = all_the_same()
    result = ResultField(
        label="Result",
        help_text="What the service would have answered, as a JSON object; the same for each item.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
        error_messages={"required": "Enter the result as a JSON object."},
    )

    def __init__(self, *args: Any, act: str, forced: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        if act != Act.BY_HAND:
            del self.fields["result"]
        if not forced:
            del self.fields["force"]

    def clean_result(self) -> dict[str, Any]:
        """Take an object."""
        result = self.cleaned_data["result"]
        if not isinstance(result, dict):
            raise forms.ValidationError("Enter a JSON object: {…}.")
        return result


class Word(forms.Form):
    """A word why, if there is one."""

    reason = forms.CharField(max_length=LONGEST_REASON, label="Reason (optional)", required=False)
