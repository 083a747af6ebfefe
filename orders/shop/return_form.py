"""What the order's page shows of returns, and the form that asks for one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from orders.lifecycle import claims, returns
from orders.lifecycle.message import MAX_QUANTITY, Line
from orders.models import Claim, Order, Return
from orders.models.returned import Reason

from .forms import ALTERED, CustomerForm

UNITS = "units-"  # then the SKU


class ReturnForm(CustomerForm):
    """Units of each line that can be sent back, and why."""

    # the same page sent twice is one return
    id_ = forms.UUIDField(
        widget=forms.HiddenInput, error_messages=dict.fromkeys(("required", "invalid"), ALTERED)
    )
    reason = forms.ChoiceField(
        label=_("Why do you send it back?"),
        choices=Reason.choices,
        error_messages=dict.fromkeys(("required", "invalid_choice"), _("Please choose a reason.")),
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
    return {"known": known, "form": form, "claims": lost, "claimable": claimable}
