"""What operators fill in to act: a reason always, and what the act needs beside it."""

from typing import Any

from django import forms

from .fairness import PRIORITIES
from .forms import LONGEST_REASON, Resubmission

SAY_WHY = {"required": "Say why: the next one to look at this will want to know."}


class Reason(forms.Form):
    """Why somebody acts."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="Why",
        help_text="Kept in the history, with your name.",
        error_messages=SAY_WHY,
    )


class ReasonIfAny(forms.Form):
    """Why somebody acts, where the act speaks for itself."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        required=False,
        label="Why, if there is more to say",
        help_text="Kept in the history, with your name.",
    )


class Change(Resubmission):
    """A resubmission with another input, or after somebody found out what was done."""

    nothing_done = forms.BooleanField(
        required=False,
        label="I found out that nothing was done under the old key",
        help_text="A new key is used then. If it was done after all, it will be done twice.",
    )


class ByHand(Resubmission):
    """The word of an operator that a step was done outside."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="How it was done, and by whom",
        help_text="Kept in the task's history, with your name.",
        error_messages=SAY_WHY,
    )


class Prioritizing(Reason):
    """Another priority for a task; `seen` is the one that it had when it was looked at."""

    seen = forms.IntegerField(widget=forms.HiddenInput)
    priority = forms.IntegerField(
        min_value=PRIORITIES[0],
        max_value=PRIORITIES[-1],
        help_text="Higher goes first. The usual one is 0.",
        error_messages={"required": "Say which: a whole number, 0 being the usual one."},
    )


def all_the_same() -> forms.BooleanField:
    """Return the box to tick that something stands, and the rest is undone."""
    return forms.BooleanField(
        label="Undo the rest all the same",
        error_messages={
            "required": "Something cannot be undone: say that the rest shall be, all the same."
        },
    )


class Undoing(Reason):
    """The wish to have a task undone; `seen` is the preview that was looked at."""

    seen = forms.CharField(max_length=64, widget=forms.HiddenInput)
    force = all_the_same()

    def __init__(self, *args: Any, standing: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        if not standing:
            del self.fields["force"]
