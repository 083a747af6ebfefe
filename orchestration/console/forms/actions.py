"""Forms for actions: always a reason, and the other fields of the action."""

from typing import Any

from django import forms

from ...decisions.fairness import PRIORITIES
from .search import LONGEST_REASON, Resubmission

SAY_WHY = {"required": "Enter a reason: it is kept in the history."}


class ReasonForm(forms.Form):
    """The reason for an action."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="Reason",
        help_text="Kept in the history, with your name.",
        error_messages=SAY_WHY,
    )


class OptionalReasonForm(forms.Form):
    """The reason for an action; it may be empty."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        required=False,
        label="Reason (optional)",
        help_text="Kept in the history, with your name.",
    )


class ChangedResubmission(Resubmission):
    """A resubmission with another input, or after a check of what was done."""

    nothing_done = forms.BooleanField(
        required=False,
        label="I have checked that nothing was done with the old key",
        help_text="A new key will be used. If the step was done after all, its effect will happen twice.",
    )


class ByHand(Resubmission):
    """An operator's statement that a step was done outside the system."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="How and by whom it was done",
        help_text="Kept in the task's history, with your name.",
        error_messages=SAY_WHY,
    )


class RecordedResult(Resubmission):
    """An operator's statement of how a step ended that awaits its result."""

    DONE, REFUSED = "done", "refused"
    ended = forms.ChoiceField(
        choices=[(DONE, "Done, with a result"), (REFUSED, "Refused, with a code")],
        widget=forms.RadioSelect(attrs={"autofocus": True}),
        label="How it ended",
        error_messages={"required": "Say how it ended."},
    )
    code = forms.CharField(
        max_length=100,
        required=False,
        label="Code of the refusal",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="Reason",
        help_text="Kept in the task's history, with your name.",
        error_messages=SAY_WHY,
    )

    def clean(self) -> None:
        """Require the code of a refusal."""
        cleaned = self.cleaned_data
        if cleaned.get("ended") == self.REFUSED and not cleaned.get("code"):
            self.add_error("code", "Enter the code: the workflow decides by it what follows.")


class Prioritizing(ReasonForm):
    """Another priority for a task; `seen` is the one that it had when it was looked at."""

    seen = forms.IntegerField(widget=forms.HiddenInput)
    priority = forms.IntegerField(
        min_value=PRIORITIES[0],
        max_value=PRIORITIES[-1],
        help_text="Higher goes first. The default is 0.",
        error_messages={"required": "Enter a whole number. The default is 0."},
    )


class Amending(ReasonForm):
    """Another input of a task; `seen` distinguishes the one that it had when it was looked at."""

    seen = forms.CharField(max_length=64, widget=forms.HiddenInput)


def all_the_same() -> forms.BooleanField:
    """Return the box to tick that something stands, and the rest is undone."""
    return forms.BooleanField(
        label="Undo the rest; the irreversible steps remain",
        error_messages={
            "required": "Some steps are irreversible. Confirm that the rest is to be undone."
        },
    )


class Undoing(ReasonForm):
    """A request to undo a task; `seen` is the preview that was looked at."""

    seen = forms.CharField(max_length=64, widget=forms.HiddenInput)
    force = all_the_same()

    def __init__(self, *args: Any, standing: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        if not standing:
            del self.fields["force"]
