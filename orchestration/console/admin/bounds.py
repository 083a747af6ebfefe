"""Forms of settings: why they change, and sentences for values beyond their bounds."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.db.models import CheckConstraint, Model, Q

REASON = "reason"
LONGEST = 100  # characters of a reason, as the history keeps
OF_DATABASE = {"min_value", "max_value"}  # codes of Django's, which name the bounds of a type


class SettingForm(forms.ModelForm):  # type: ignore[type-arg] # generic for the type checker only
    """The form of a setting, with the reason for the change.

    Django looks at the bounds of the column's type first, and then no longer at the constraint.
    """

    reason = forms.CharField(
        max_length=LONGEST, required=False, help_text="Kept in the history, with your name."
    )

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc] # Django's own hook, which its stubs leave out
        for name, errors in self.errors.as_data().items():
            if OF_DATABASE & {error.code for error in errors}:
                sentence = _sentence(self._meta.model, name)
                if sentence:
                    self.errors[name] = self.error_class([sentence])


def _sentence(model: type[Model], name: str) -> str:
    """Return the sentence of the constraint on a field, or ""."""
    constraints: Sequence[Any] = model._meta.constraints  # noqa: SLF001 - public by Django's documentation
    return next(
        (
            str(constraint.get_violation_error_message())
            for constraint in constraints
            if isinstance(constraint, CheckConstraint)
            and isinstance(constraint.condition, Q)
            and name in constraint.condition.referenced_base_fields
        ),
        "",
    )
