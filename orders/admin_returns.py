"""What the admin shows of returns, and the page on which staff report that a parcel has arrived."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from orchestration.api import format_money

from .admin_read_only import ReadOnly
from .lifecycle import exchange_offers, returns
from .lifecycle.numbers import order_number
from .models import Claim, Exchange, Order, Return
from .models.claim import ClaimState
from .models.returned import ReturnState

WORDS = {  # for staff; those of the customer are the states' own
    ReturnState.ASKED: "its label is being made",
    ReturnState.AWAITED: "its parcel is awaited",
    ReturnState.ARRIVED: "has arrived; a person of the group returns decides on the page Decisions",
    ReturnState.REFUNDED: "ended, and money is paid back",
    ReturnState.REPLACED: "ended, and other goods are sent for it",
    ReturnState.REFUSED: "ended, and nothing is paid back",
    ReturnState.LAPSED: "ended, as no parcel came",
}

CLAIM_WORDS = {
    ClaimState.ASKED: "a person of the group returns decides on the page Decisions",
    ClaimState.SENT_AGAIN: "the goods were sent again",
    ClaimState.REFUNDED: "money is paid back",
    ClaimState.REFUSED: "refused",
}


def in_words(row: Return) -> str:
    """Return how a return stands."""
    return WORDS[ReturnState(row.state)]


def units_in_words(row: Return) -> str:
    """Return what comes back."""
    return ", ".join(f"{line['quantity']} of {line['name']}" for line in row.lines)


class ReturnInline(ReadOnly, admin.StackedInline):  # type: ignore[type-arg] # as above
    """What comes back of an order, and came."""

    model = Return
    extra = 0
    fields = [
        "units", "stands", "reason", "label", "worth", "wish", "replacement", "note", "created_at",
    ]  # fmt: skip
    readonly_fields = ["units", "stands", "worth", "wish", "replacement"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Return]:
        """Read what was sent for them with them."""
        return super().get_queryset(request).select_related("exchange")

    @admin.display(description="goods")
    def units(self, row: Return) -> str:
        """Show what comes back."""
        return units_in_words(row)

    @admin.display(description="state")
    def stands(self, row: Return) -> str:
        """Show how it stands."""
        return in_words(row)

    @admin.display(description="amount")
    def worth(self, row: Return) -> str:
        """Show what was paid for these goods, and how much of it goes back."""
        currency = row.order.currency
        return (
            f"{format_money(row.paid, currency)} of {format_money(row.amount, currency)} paid back"
        )

    @admin.display(description="wished for it")
    def wish(self, row: Return) -> str:
        """Show what the customer wants for them."""
        if not row.exchange_for:
            return "money"
        wished = exchange_offers.read(row.exchange_for)
        return f"{wished.words}, at {format_money(wished.total, row.order.currency)}"

    @admin.display(description="sent for it")
    def replacement(self, row: Return) -> str:
        """Link to the order that is sent for them."""
        return order_link(row.replacement) if row.replacement else "-"


def order_link(order: UUID) -> str:
    """Return a link to an order in the admin."""
    address = reverse("admin:orders_order_change", args=[order])
    return format_html('<a href="{}">{}</a>', address, order_number(order))


def follows(order: Order) -> str:
    """Link to the order for whose return an order is sent, and to the one that paid, if another did."""
    exchange = Exchange.objects.select_related("of").filter(order=order.pk).first()
    if exchange is None:
        return "-"
    of = order_link(exchange.of.order_id)
    if exchange.payer_id == exchange.of.order_id:
        return of
    return format_html("{}; paid by {}", of, order_link(exchange.payer_id))


class ClaimInline(ReadOnly, admin.StackedInline):  # type: ignore[type-arg] # as above
    """Parcels of an order that did not arrive."""

    model = Claim
    extra = 0
    fields = ["parcel", "stands", "again", "back", "note", "created_at"]
    readonly_fields = ["stands", "back"]

    @admin.display(description="state")
    def stands(self, claim: Claim) -> str:
        """Show how it stands."""
        return CLAIM_WORDS[ClaimState(claim.state)]

    @admin.display(description="paid back")
    def back(self, claim: Claim) -> str:
        """Show what is paid back for it."""
        return format_money(claim.paid, claim.order.currency)


def returns_page(request: HttpRequest, order: Order, context: dict[str, Any]) -> HttpResponse:
    """Show the returns of an order that are under way, or note that a parcel has arrived."""
    address = reverse("admin:orders_order_change", args=[order.pk])
    if request.method == "POST":
        row = get_object_or_404(order.returns, pk=_uuid(request.POST.get("return", "")))
        try:
            returns.arrived(row.pk, by=request.user.get_username())
        except returns.NotAwaited:
            row.refresh_from_db()
            messages.error(request, f"No parcel is awaited: this return {in_words(row)}.")
        else:
            messages.success(request, "Noted. The return waits for its inspection now.")
        return redirect(address)
    shown = {
        **context,
        "title": f"Returns of order {order.number}",
        "rows": [
            (row, units_in_words(row), in_words(row)) for row in order.returns.all() if row.awaited
        ],
        "order": order,
        "address": address,
    }
    return TemplateResponse(request, "admin/orders/order/returns.html", shown)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
