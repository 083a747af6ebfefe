"""The form of a subscription: to begin one, and to change it."""

from typing import Any

from django import forms
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _

from orders.cards import CARDS
from orders.lifecycle.message import MAX_QUANTITY
from orders.models import Subscription
from orders.models.subscription import Rhythm

from .cart import BETWEEN, BadQuantity, read_quantity
from .forms import ADDRESS, CheckoutForm

LIMITS = {"least": 1, "most": MAX_QUANTITY}
OWN = ("quantity", "weeks", "email", "payment_method")


class SubscriptionForm(CheckoutForm):
    """Quantity, rhythm, address and card; `sums_at` is where the price of other values comes from."""

    field_order = ["quantity", "weeks", "name", "email"]  # then the others
    quantity = forms.IntegerField(
        label=_("Quantity"),
        min_value=1,
        max_value=MAX_QUANTITY,
        initial=1,
        widget=forms.NumberInput(attrs={"class": "number", "inputmode": "numeric"}),
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"), BETWEEN % LIMITS
        ),
    )
    weeks = forms.TypedChoiceField(
        label=_("How often"),
        choices=Rhythm.choices,
        coerce=int,
        initial=Rhythm.TWO,
        widget=forms.RadioSelect,
        error_messages=dict.fromkeys(("required", "invalid_choice"), _("Please choose how often.")),
    )

    def __init__(self, *args: Any, sums_at: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["discount_code"]  # a code is for one order
        payment: Any = self.fields["payment_method"]
        payment.choices = CARDS
        # the price follows country and quantity, where it is shown
        priced = {"hx-post": sums_at, "hx-disabled-elt": "#place"}
        country = self.fields["country"].widget.attrs
        country |= priced if sums_at else {"hx-post": reverse_lazy("shop:address_fields")}
        if sums_at:
            self.fields["quantity"].widget.attrs |= {**priced, "hx-swap": "none"}

    @property
    def amount(self) -> int:
        """Return the quantity that is filled in; one if that is none."""
        if self.is_bound:
            self.full_clean()
            return int(self.cleaned_data.get("quantity", 1))
        try:
            return read_quantity(str(self.initial.get("quantity") or "1"))
        except BadQuantity:
            return 1

    @property
    def values(self) -> dict[str, Any]:
        """What a valid form says, by the names of the model's fields."""
        return {name: self.cleaned_data[name] for name in (*OWN, *ADDRESS)}


def values_of(row: Subscription) -> dict[str, Any]:
    """Return what a form shows of a subscription."""
    return {name: getattr(row, name) for name in (*OWN, *ADDRESS)}
