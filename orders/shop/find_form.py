"""The form that finds an order."""

from django import forms
from django.utils.translation import gettext_lazy as _

from orders.lifecycle.fields import MAX_LENGTH
from orders.lifecycle.numbers import as_typed

from .forms import NO_EMAIL, CustomerForm, Email, Text


class FindForm(CustomerForm):
    """Number and e-mail address of an order."""

    number = Text(
        label=_("Order number"),
        max_length=30,
        help_text=_("As in the confirmation: 7KQ4M-9XD2P"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": _("Please enter the order number.")},
    )
    email = Email(
        label=_("E-mail"),
        max_length=MAX_LENGTH["email"],
        help_text=_("The one you gave with the order."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
        error_messages={"required": _("Please enter the e-mail address."), "invalid": NO_EMAIL},
    )

    def clean_number(self) -> str:
        """Return the number in its canonical form, with misread letters corrected."""
        return as_typed(self.cleaned_data["number"])
