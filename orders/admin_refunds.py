"""The page of the admin on which staff pay part of an order back."""

from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from orchestration.api import currency_digits, format_money

from .amount_fields import ScaledField
from .lifecycle import refunds
from .models import Order

REASON = 200  # characters


class RefundForm(forms.Form):
    """An amount in the order's currency, and why."""

    id_ = forms.UUIDField(widget=forms.HiddenInput)  # the same page sent twice is one refund
    reason = forms.CharField(
        max_length=REASON, help_text="The customer reads it in the letter.", strip=True
    )
    field_order = ["amount", "reason"]

    def __init__(self, data: Any, *, order: Order, left: int) -> None:
        super().__init__(data, initial={"id_": uuid4(), "amount": left})
        self.fields["amount"] = ScaledField(
            label=f"Amount ({order.currency})",
            help_text=f"{format_money(left, order.currency)} at most.",
            digits=currency_digits(order.currency),
            least=1,
            most=order.total,  # what is left is looked at under a lock
        )
        self.order_fields(self.field_order)


def refund_page(request: HttpRequest, order: Order, context: dict[str, Any]) -> HttpResponse:
    """Show the form, or ask for the refund and lead back to the order."""
    left = refunds.left_of(order)
    form = RefundForm(request.POST or None, order=order, left=left)
    address = reverse("admin:orders_order_change", args=[order.pk])
    if request.method == "POST" and form.is_valid():
        asked = form.cleaned_data
        try:
            refunds.refund(
                order.pk, asked["amount"], asked["reason"], id_=asked["id_"], by=request.user.pk
            )
        except refunds.TooMuch as refusal:
            rest = format_money(refusal.left, order.currency)
            form.add_error("amount", f"Only {rest} can be paid back.")
        except refunds.NotRefundable:
            form.add_error(None, "This order is not completed: cancel it instead.")
        else:
            amount = format_money(asked["amount"], order.currency)
            messages.success(request, f"{amount} are being paid back; the customer gets a letter.")
            return redirect(address)
    shown = {
        **context,
        "title": f"Refund of order {order.number}",
        "form": form if left or form.is_bound else None,
        "order": order,
        "address": address,
    }
    status = 422 if request.method == "POST" else 200
    return TemplateResponse(request, "admin/orders/order/refund.html", shown, status=status)
