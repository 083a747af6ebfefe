"""Forms of the lists: a search of tasks, a search of the audit, a saved view, a resubmission."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any, cast

from django import forms

from ... import registry
from ...models import SavedView
from ...states import TaskState
from ..queries.audit_log import kinds
from ..queries.audit_sources import AuditFilter
from ..queries.search_terms import TROUBLE

LONGEST_REASON = 500
PAGING = ("older", "newer", "top")  # of the audit: the place of a page, in its address


class Narrowing(forms.Form):
    """The search of the list of tasks as a form; `queries.read` understands what it sends.

    Only for show: what was asked for fills it, and it is checked where the search is read.
    """

    state = forms.ChoiceField(required=False)
    workflow = forms.ChoiceField(required=False)
    step = forms.ChoiceField(required=False, label="Step")
    agent = forms.ChoiceField(required=False, label="Agent")
    error = forms.CharField(required=False, label="Error (starts with)")
    attempts = forms.CharField(required=False)
    value = forms.CharField(required=False)
    after = forms.CharField(required=False, label="Received after")
    before = forms.CharField(required=False, label="Received before")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # a class cannot name a field "is"
        self.fields["is"] = forms.ChoiceField(required=False, label="Condition")
        self.order_fields(["state", "is"])
        workflows = registry.workflows.values()
        choices: dict[str, Iterable[str]] = {
            "state": TaskState.values,
            "is": TROUBLE,
            "workflow": sorted(registry.workflows),
            "step": dict.fromkeys(step.name for workflow in workflows for step in workflow.steps),
            "agent": sorted(registry.agents),
        }
        for name, names in choices.items():
            any_or = [("", "any"), *((choice, choice) for choice in names)]
            cast("forms.ChoiceField", self.fields[name]).choices = any_or
        examples = {"attempts": ">2", "value": ">100", "after": "2h", "before": "2026-01-31"}
        for name, field in self.fields.items():
            if isinstance(field, forms.CharField) and not isinstance(field, forms.ChoiceField):
                hints = {"autocomplete": "off", "spellcheck": "false", "size": "10"}
                field.widget.attrs = {**hints, "placeholder": examples.get(name, "timeout")}


class AuditSearch(forms.Form):
    """Which acts to list; every field may be left out. Sent with GET, so it is in the address."""

    actor = forms.CharField(
        required=False,
        max_length=150,
        label="User",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    kind = forms.ChoiceField(required=False, label="Action")
    after = forms.DateField(
        required=False, label="From", widget=forms.DateInput(attrs={"type": "date"})
    )
    before = forms.DateField(
        required=False, label="Before", widget=forms.DateInput(attrs={"type": "date"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = list(dict.fromkeys(kinds()))
        cast("forms.ChoiceField", self.fields["kind"]).choices = [("", "any"), *choices]

    def clean(self) -> None:
        """Refuse filters that do not exist: not to list all for what one should have left out."""
        if unknown := self.data.keys() - {*self.fields, *PAGING, "seen"}:
            names = ", ".join(self.fields)
            raise forms.ValidationError(f"Unknown filter “{min(unknown)}”; known: {names}.")

    def filters(self, *, personal: bool) -> AuditFilter | None:
        """Return the filters, or None if they are invalid."""
        if not self.is_valid():
            return None
        asked = self.cleaned_data
        return AuditFilter(
            actor=asked["actor"],
            kind=asked["kind"],
            since=_midnight(asked["after"]),
            until=_midnight(asked["before"]),
            personal=personal,
        )


def _midnight(day: date | None) -> datetime | None:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None


class View(forms.ModelForm):  # type: ignore[type-arg]
    """A search to keep."""

    class Meta:
        model = SavedView
        fields = ("name", "query", "shared")
        error_messages = {"name": {"required": "Give the view a name."}}


class Resubmission(forms.Form):
    """An operator's wish to have a failed step tried again, and why."""

    attempt = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="Reason",
        help_text="Kept in the task's history.",
        error_messages={"required": "Enter a reason: it is kept in the task's history."},
    )
