"""Forms to filter incidents and to act on them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.utils.dateparse import parse_datetime

from ... import registry
from ...models.incident import IncidentState
from ..queries.incidents import IncidentFilters
from .actions import SAY_WHY
from .search import LONGEST_REASON

ORDERS = [("", "impact"), ("last", "last seen")]
LENGTHS = [("1", "1 hour"), ("8", "8 hours"), ("24", "24 hours"), ("168", "7 days"),
           ("", "until unmuted")]  # fmt: skip


class Finder(forms.Form):
    """Which incidents to list; every field may be left out. Sent with GET, so it is in the address."""

    state = forms.ChoiceField(
        choices=[("", "open"), ("all", "any"), *IncidentState.choices], required=False
    )
    workflow = forms.ChoiceField(required=False)
    step = forms.ChoiceField(required=False)
    agent = forms.ChoiceField(required=False)
    sort = forms.ChoiceField(choices=ORDERS, required=False, label="Order by")
    mine = forms.BooleanField(required=False, label="Assigned to me")
    after = forms.CharField(max_length=60, required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        workflows = registry.workflows.values()
        steps = (step.name for workflow in workflows for step in workflow.steps)
        for name, names in (
            ("workflow", registry.workflows),
            ("step", steps),
            ("agent", registry.agents),
        ):
            cast("forms.ChoiceField", self.fields[name]).choices = _any_or(names)

    def clean(self) -> dict[str, Any]:
        """Parse the place from which the list continues."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        value, _, last = cleaned.get("after", "").rpartition("~")
        if last:
            place = _moment(value) if cleaned.get("sort") == "last" else _number(value)
            if place is None or not last.isdecimal() or len(last) > 18:
                self.add_error("after", "This page does not exist.")
            else:
                cleaned["place"] = (place, int(last))
        return cleaned

    def filters(self) -> IncidentFilters | None:
        """Return the filters, or None if they are invalid."""
        if not self.is_valid():
            return None
        asked = self.cleaned_data
        return IncidentFilters(
            state=asked["state"],
            workflow=asked["workflow"],
            step=asked["step"],
            agent=asked["agent"],
            assignee=self.user.pk if asked["mine"] else None,
            by_last=asked["sort"] == "last",
            after=asked.get("place"),
        )


class Seen(forms.Form):
    """What the user saw: the last event of the incident that decides anything."""

    seen = forms.IntegerField(min_value=0, max_value=2**63 - 1, widget=forms.HiddenInput)


class Note(forms.Form):
    """A note on an incident."""

    text = forms.CharField(
        max_length=2_000,
        label="Note",
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Enter a note."},
    )


class Assign(Seen):
    """Who sees to an incident."""

    to = forms.ModelChoiceField(
        User.objects.none(), required=False, label="Assignee", empty_label="none"
    )

    def __init__(self, *args: Any, people: Iterable[User], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast("forms.ModelChoiceField[User]", self.fields["to"])
        field.queryset = User.objects.filter(id__in=[person.pk for person in people])


class Mute(Seen):
    """Why an incident is muted, and for how long."""

    reason = forms.CharField(max_length=LONGEST_REASON, label="Reason", error_messages=SAY_WHY)
    hours = forms.ChoiceField(choices=LENGTHS, required=False, initial="8", label="Duration")

    @property
    def length(self) -> int | None:
        """Return the hours, or None for as long as it takes."""
        return int(self.cleaned_data["hours"]) if self.cleaned_data["hours"] else None


def _any_or(names: Iterable[str]) -> list[tuple[str, str]]:
    return [("", "any"), *((name, name) for name in sorted(set(names)))]


def _number(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 12 else None


def _moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
