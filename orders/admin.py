"""The shop in the Django admin: products can be edited, orders only viewed."""

import re
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.staticfiles import finders
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.forms import Field
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from orchestration.api import CappedPaginator, format_money

from . import handling
from .admin_export import as_csv
from .admin_figures import figures
from .admin_gift_cards import GiftCardAdmin  # noqa: F401 - registers itself
from .admin_prices import DatedPriceInline, NewDatedPriceInline
from .admin_read_only import ReadOnly
from .admin_refunds import refund_page
from .admin_removals import RemovalInline
from .admin_returns import ClaimInline, ReturnInline, follows, returns_page
from .admin_stock import FewOfProduct, WithStock
from .admin_subscriptions import SubscriptionAdmin  # noqa: F401 - registers itself
from .amount_fields import InCurrency
from .charges import from_json
from .lifecycle import operator_search, snapshots
from .lifecycle.message import WORKFLOW
from .lifecycle.payments import balance, movements
from .lifecycle.sums import sums
from .models import Order, OrderLine, Parcel, Product, Refund
from .models.refund import RefundState
from .times import moment as in_words

linebreak = mark_safe("<br>")
PICTURE = re.compile("[A-Za-z0-9_-]+")


class ProductForm(InCurrency):
    """A product whose picture exists; saved, its price is one in the shop's currency."""

    amounts = {"price": 1}

    def clean_picture(self) -> str:
        """Refuse a name that no picture has: customers would see none."""
        name = str(self.cleaned_data["picture"])
        product = Product(picture=name)
        if not PICTURE.fullmatch(name) or finders.find(product.picture_path) is None:
            raise ValidationError(f"There is no static/{product.picture_path}.", code="missing")
        return name


@admin.register(Product)
class ProductAdmin(WithStock):
    """Products; they are deactivated instead of deleted, because orders name them."""

    form = ProductForm
    list_display = ["name", "sku", "amount", "units", "stock", "active", "position"]
    list_filter = ["kind", FewOfProduct, "stock", "active", "subscribable"]
    list_editable = ["stock", "active", "position"]
    search_fields = ["name", "sku"]
    prepopulated_fields = {"slug": ["name"]}

    @admin.display(description="price now", ordering="due")
    def amount(self, product: Product) -> str:
        """Show the price that is due, with its currency."""
        return format_money(product.due, product.currency)

    def get_inlines(self, _request: HttpRequest, product: Product | None = None) -> Any:
        """Offer dated prices for a product that exists."""
        return [DatedPriceInline, NewDatedPriceInline] if product else []

    def get_readonly_fields(
        self, _request: HttpRequest, product: Product | None = None
    ) -> tuple[str, ...]:
        """Make an existing SKU read-only: the inventory identifies the product by it."""
        return ("sku",) if product else ()

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Field | None:
        """Label the editable fields of the list for screen readers."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field and db_field.name in self.list_editable:
            field.widget.attrs["aria-label"] = field.label
        return field

    def has_delete_permission(self, _request: HttpRequest, _product: Product | None = None) -> bool:
        """Refuse: see the class."""
        return False


class LineInline(ReadOnly, admin.StackedInline):  # type: ignore[type-arg] # as above
    """The lines of an order; stacked, because Django's table has empty column headers."""

    model = OrderLine
    extra = 0
    fields = ["sku", "name", "quantity", "each"]
    readonly_fields = ["each"]

    @admin.display(description="unit price")
    def each(self, line: OrderLine) -> str:
        """Show the price of one."""
        return format_money(line.unit_price, line.order.currency)


class ParcelInline(ReadOnly, admin.StackedInline):  # type: ignore[type-arg] # as above
    """The parcels of an order that has several."""

    model = Parcel
    extra = 0
    fields = ["state", "carrier", "tracking", "warehouse", "lines"]


class RefundInline(ReadOnly, admin.StackedInline):  # type: ignore[type-arg] # as above
    """What was paid back of an order, and is being."""

    model = Refund
    extra = 0
    fields = ["back", "to_card", "overpaid", "reason", "state", "by", "created_at"]
    readonly_fields = ["back", "to_card"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Refund]:
        """Read who made them with them."""
        return super().get_queryset(request).select_related("by")

    @admin.display(description="amount")
    def back(self, refund: Refund) -> str:
        """Show the amount with its currency."""
        return format_money(refund.amount, refund.order.currency)

    @admin.display(description="of that, to the gift card")
    def to_card(self, refund: Refund) -> str:
        """Show the part with its currency."""
        return format_money(refund.on_card, refund.order.currency)


@admin.register(Order)
class OrderAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """Orders with the status last reported by the engine."""

    actions = [as_csv]
    list_display = ["number", "created_at", "name", "email", "amount", "status"]
    list_filter = ["status", "created_at"]
    search_fields = ["number", "email", "id"]
    exclude = ["snapshot", "asked", "total"]  # the task's page shows the first two
    readonly_fields = ["amount", "price", "money", "follows", "task"]
    inlines = [LineInline, RemovalInline, ParcelInline, RefundInline, ReturnInline, ClaimInline]
    # counting millions of orders is slow
    paginator = CappedPaginator
    show_full_result_count = False

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Order], search_term: str
    ) -> tuple[QuerySet[Order], bool]:
        """Search by the customer's name too, as the dashboard does."""
        orders, repeats = super().get_search_results(request, queryset, search_term)
        if by_name := operator_search.named(search_term):
            orders |= queryset.filter(pk__in=by_name)
        return orders, repeats

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses, with those of this class before those of orders."""
        own = self.admin_site.admin_view
        return [
            path("figures/", own(self.figures), name="orders_order_figures"),
            path("<uuid:order_id>/refund/", own(self.refund), name="orders_order_refund"),
            path("<uuid:order_id>/returns/", own(self.returns), name="orders_order_returns"),
            *super().get_urls(),
        ]

    def figures(self, request: HttpRequest) -> HttpResponse:
        """Show the day's figures to those who may see orders."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return figures(request, {**self.admin_site.each_context(request), "opts": self.opts})

    def refund(self, request: HttpRequest, order_id: UUID) -> HttpResponse:
        """Show the form of a refund to those who may make one."""
        if not self.may_refund(request):
            raise PermissionDenied
        order = get_object_or_404(Order, pk=order_id)
        return refund_page(
            request, order, {**self.admin_site.each_context(request), "opts": self.opts}
        )

    def returns(self, request: HttpRequest, order_id: UUID) -> HttpResponse:
        """Show what comes back to those who may report that it has arrived."""
        if not self.may_receive(request):
            raise PermissionDenied
        order = get_object_or_404(Order, pk=order_id)
        return returns_page(
            request, order, {**self.admin_site.each_context(request), "opts": self.opts}
        )

    def may_receive(self, request: HttpRequest) -> bool:
        """Return whether a user may see orders and change returns."""
        return self.has_view_permission(request) and request.user.has_perm("orders.change_return")

    def may_refund(self, request: HttpRequest) -> bool:
        """Return whether a user may see orders and pay back."""
        return self.has_view_permission(request) and request.user.has_perm("orders.add_refund")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Offer the refund and the returns beside the order."""
        more = {**(extra_context or {}), "may_refund": self.may_refund(request)}
        more["may_receive"] = self.may_receive(request)
        return super().change_view(request, object_id, form_url, more)

    @admin.display(description="how the total comes about")
    def price(self, order: Order) -> str:
        """Show subtotal, shipping, discount, total and tax."""
        special = handling.from_json(order.handling)
        lines = sums(order.total, order.currency, from_json(order.charges), special)
        return format_html_join(linebreak, "{}: {}", ((line.label, line.amount) for line in lines))

    @admin.display(description="money in and out")
    def money(self, order: Order) -> str:
        """Show what was authorized, captured, refunded and released, by the last message."""
        moved = movements(snapshots.of(order))
        if not moved:
            return "Nothing was authorized or charged."
        rows = format_html_join(
            linebreak,
            "{}: {} {} {}",
            (
                (step.kind, format_money(step.amount, order.currency), step.reference,
                 in_words(step.at) if step.at else "")
                for step in moved
            ),
        )  # fmt: skip
        # what went back to a gift card is not of this money
        back = Coalesce(Sum(F("amount") - F("on_card")), 0)
        paid = order.refunds.filter(state=RefundState.PAID).aggregate(back=back)["back"]
        rest = format_money(balance(moved) - paid, order.currency)
        return format_html("{}<br>kept: {}", rows, rest)

    @admin.display(description="sent for a return of")
    def follows(self, order: Order) -> str:
        """Link to the order that something came back from, if this is sent for it."""
        return follows(order)

    @admin.display(description="task")
    def task(self, order: Order) -> str:
        """Link to the order's task in the operators' pages."""
        address = reverse("ops:started", args=[WORKFLOW, order.pk])
        return format_html('<a href="{}">{}</a>', address, f"{WORKFLOW} {order.number}")

    @admin.display(description="total", ordering="total")
    def amount(self, order: Order) -> str:
        """Show the total with its currency."""
        return format_money(order.total, order.currency)
