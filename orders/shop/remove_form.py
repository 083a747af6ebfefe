"""The forms that remove units of a line from an order."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from django import forms
from django.utils.translation import gettext_lazy as _

from orders.lifecycle.fields import MAX_LENGTH
from orders.lifecycle.message import MAX_QUANTITY

from .forms import ALTERED, CustomerForm

AS_SHOWN = dict.fromkeys(("required", "invalid", "invalid_choice", "max_length"), ALTERED)


class RemoveForm(CustomerForm):
    """Units of one line; `most` of them may be removed."""

    # the same page sent twice is one removal
    id_ = forms.UUIDField(widget=forms.HiddenInput, error_messages=AS_SHOWN)
    sku = forms.CharField(
        widget=forms.HiddenInput, max_length=MAX_LENGTH["sku"], error_messages=AS_SHOWN
    )
    units = forms.TypedChoiceField(
        label=_("How many"),
        choices=[(count, count) for count in range(1, MAX_QUANTITY + 1)],
        coerce=int,
        error_messages=AS_SHOWN,
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        sku: str = "",
        most: int = MAX_QUANTITY,
        single: bool = False,
    ) -> None:
        super().__init__(data, initial={"id_": uuid4(), "sku": sku}, auto_id=f"id_remove_{sku}_%s")
        units = self.fields["units"]
        units.choices = units.choices[:most]  # type: ignore[attr-defined] # of a ChoiceField
        if single:
            units.widget, units.initial = forms.HiddenInput(), 1


def receipt(lines: Iterable[Any], removable: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the lines of an order, each with the form that removes some of it, if that is possible."""
    return [
        {
            "line": line,
            "form": RemoveForm(sku=line.sku, most=removable[line.sku], single=line.quantity == 1)
            if line.sku in removable
            else None,
        }
        for line in lines
    ]
