"""What the order's page shows of returns, and the form that asks for one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from orders.lifecycle import access, claims, returns
from orders.lifecycle.fields import MAX_LENGTH
from orders.lifecycle.message import MAX_QUANTITY, Line
from orders.lifecycle.numbers import order_number
from orders.models import Claim, Order, Return
from orders.models.returned import Reason

from .forms import ALTERED, CustomerForm

UNITS = "units-"  # then the SKU
SAME, OTHER = "same", "other"
WISHES = [
    ("money", _("My money back")),
    (SAME, _("The same again")),
    (OTHER, _("Another product: I choose it next")),
]


class ReturnForm(CustomerForm):
    """Units of each line that can be sent back, why, and what the customer gets for them."""

    # the same page sent twice is one return
    id_ = forms.UUIDField(
        widget=forms.HiddenInput, error_messages=dict.fromkeys(("required", "invalid"), ALTERED)
    )
    reason = forms.ChoiceField(
        label=_("Why do you send it back?"),
        choices=Reason.choices,
        error_messages=dict.fromkeys(("required", "invalid_choice"), _("Please choose a reason.")),
    )
    wish = forms.ChoiceField(
        label=_("What would you like for it?"),
        choices=WISHES,
        widget=forms.RadioSelect,
        initial="money",
        required=False,  # the page of the former release has no such field
        error_messages={"invalid_choice": ALTERED},
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        bought: Iterable[Any],
        left: Mapping[str, int],
    ) -> None:
        super().__init__(data, initial={"id_": uuid4()}, auto_id="id_return_%s")
        for line in bought:
            # what is left is looked at under a lock, so a form that is out of date gets its sentence
            most = left.get(line.sku, 0) if data is None else MAX_QUANTITY
            if most:
                self.fields[UNITS + line.sku] = _units(gettext(line.name), most)
        self.order_fields([name for name in self.fields if name.startswith(UNITS)])

    @property
    def units(self) -> dict[str, int]:
        """The chosen units by SKU."""
        chosen = self.cleaned_data.items()
        return {
            name.removeprefix(UNITS): count
            for name, count in chosen
            if name.startswith(UNITS) and count
        }


class AskedForm(ReturnForm):
    """The form as it is sent, with the other product that was chosen."""

    product = forms.CharField(max_length=MAX_LENGTH["sku"], required=False)
    pieces = forms.IntegerField(min_value=1, max_value=MAX_QUANTITY, required=False)

    @property
    def chooses(self) -> bool:
        """Whether another product is still to be chosen."""
        return self.cleaned_data["wish"] == OTHER and not self.cleaned_data["product"]

    @property
    def wished(self) -> dict[str, int]:
        """The units by SKU that are wished for; empty: money."""
        chosen = self.cleaned_data
        if chosen["wish"] == OTHER:
            return {chosen["product"]: chosen["pieces"] or 1}
        return self.units if chosen["wish"] == SAME else {}


def _units(name: str, most: int) -> forms.TypedChoiceField:
    return forms.TypedChoiceField(
        label=name,
        choices=[(count, count) for count in range(most + 1)],
        coerce=int,
        required=False,
        initial=0,
        error_messages={"invalid_choice": ALTERED},
    )


def section(order: Order, lines: Sequence[Line], *, own: bool) -> dict[str, Any]:
    """Return what the page of a completed order shows of returns and claims (of prefetched rows).

    The forms are for its customer, as long as something can be sent back or claimed.
    """
    known: Sequence[Return] = list(order.returns.all())
    lost: Sequence[Claim] = list(order.claims.all())
    bought = lines if own and returns.is_open(order) else ()
    left = returns.left_of(bought, known)
    form = ReturnForm(bought=bought, left=left) if any(left.values()) else None
    claimable = claims.claimable(order, lost) if own and not known else []
    rows = [{"row": row, "replacement": replacement_of(row, own=own)} for row in known]
    return {"known": rows, "form": form, "claims": lost, "claimable": claimable}


def replacement_of(row: Return, *, own: bool) -> dict[str, str] | None:
    """Return the number and the page of what is sent for a return, if something is."""
    return other_order(row.replacement, own=own) if row.replacement else None


def other_order(order: UUID, *, own: bool) -> dict[str, str]:
    """Return the number of an order and the path of its page, which the customer may see."""
    path = access.link(order) if own else reverse("shop:order", args=[order])
    return {"number": order_number(order), "path": path}
