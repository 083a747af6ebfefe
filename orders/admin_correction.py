"""The page of the admin on which staff correct the stock of a product in a warehouse."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from .models import StockLevel
from .models.stock import CorrectionKind
from .stock.corrections import Correction, correct

REASON = 200  # characters
MOST = 1_000_000  # units


class CorrectionForm(forms.Form):
    """Units that came in, were counted or are gone, and why."""

    id_ = forms.UUIDField(widget=forms.HiddenInput)  # the same page sent twice is one correction
    # what a count is held against: the level that the page showed, not a later one
    expected = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    kind = forms.ChoiceField(
        label="What happened", choices=CorrectionKind, widget=forms.RadioSelect
    )
    units = forms.IntegerField(
        min_value=0,
        max_value=MOST,
        help_text="How many came in or are gone; of a count, all that lie there, reserved ones too.",
    )
    reason = forms.CharField(
        max_length=REASON, help_text="For the shop's records: a delivery note, the count's sheet."
    )

    def __init__(self, data: Any, *, shelf: int) -> None:
        super().__init__(data, initial={"id_": uuid4(), "expected": max(shelf, 0)})

    def clean(self) -> dict[str, Any]:
        """Refuse to receive or take out nothing."""
        asked: dict[str, Any] = super().clean() or {}
        if asked.get("units") == 0 and asked.get("kind") != CorrectionKind.COUNTED:
            self.add_error("units", "At least one.")
        return asked

    def correction(self, level: StockLevel) -> Correction:
        """Return what a valid form asks for."""
        asked = self.cleaned_data
        kind = CorrectionKind(asked["kind"])
        return Correction(
            id=asked["id_"],
            sku=level.product_id,
            warehouse=level.warehouse,
            kind=kind,
            units=asked["units"],
            reason=asked["reason"],
            expected=asked["expected"] if kind is CorrectionKind.COUNTED else None,
        )


def correction_page(
    request: HttpRequest,
    level: StockLevel,
    context: dict[str, Any],
    note: Callable[[HttpRequest, Any, str], object],
) -> HttpResponse:
    """Show the form, or ask for the correction, note it in the product's history, and lead back there."""
    product = level.product
    form = CorrectionForm(request.POST or None, shelf=level.shelf)
    address = reverse("admin:orders_product_change", args=[product.pk])
    if request.method == "POST" and form.is_valid():
        asked = form.correction(level)
        with transaction.atomic():
            if correct(asked, by=request.user.pk, name=request.user.get_username()):
                words = f"{asked.kind.label}: {asked.units} in {asked.warehouse}. {asked.reason}"
                note(request, product, words)
        messages.success(
            request, "Noted. The inventory changes its stock now; its answer is below."
        )
        return redirect(f"{address}#stock")
    shown = {
        **context,
        "title": f"Stock of {product} in {level.warehouse}",
        "form": form,
        "level": level,
        "product": product,
        "address": address,
    }
    status = 422 if request.method == "POST" else 200
    template = "admin/orders/stocklevel/correct.html"
    return TemplateResponse(request, template, shown, status=status)
