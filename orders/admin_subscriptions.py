"""Subscriptions in the Django admin: with their orders, and the page on which staff halt one."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from orchestration.api import CappedPaginator, format_money

from .admin_read_only import ReadOnly
from .lifecycle.numbers import order_number
from .models import Subscription, SubscriptionOrder
from .models.subscription import Because
from .subscriptions import acts

PAUSE, END = "pause", "end"
ACTS = {PAUSE: acts.pause, END: acts.end}
REASON = 200  # characters


class HaltForm(forms.Form):
    """Whether to pause or end a subscription, and why."""

    act = forms.ChoiceField(
        choices=[(PAUSE, "Pause: the customer may resume it"), (END, "End, once and for all")],
        widget=forms.RadioSelect,
    )
    reason = forms.CharField(
        max_length=REASON, help_text="The customer reads it in the letter.", strip=True
    )


class OrderInline(ReadOnly, admin.StackedInline):  # type: ignore[type-arg] # no generic at run time
    """The orders of a subscription, newest first."""

    model = SubscriptionOrder
    extra = 0
    fields = ["on", "number", "price_of_one", "paid"]
    readonly_fields = ["number", "price_of_one"]

    @admin.display(description="order")
    def number(self, row: SubscriptionOrder) -> str:
        """Link to the order; it has a page once it is taken."""
        address = reverse("admin:orders_order_change", args=[row.order])
        return format_html('<a href="{}">{}</a>', address, order_number(row.order))

    @admin.display(description="price of one")
    def price_of_one(self, row: SubscriptionOrder) -> str:
        """Show what one cost."""
        return format_money(row.unit_price, row.subscription.currency)


@admin.register(Subscription)
class SubscriptionAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """Subscriptions; staff pause or end them with a reason, and customers do the rest."""

    list_display = [
        "number", "product", "quantity", "weeks", "email", "state", "next_on", "unpaid", "failed_on",
    ]  # fmt: skip
    list_filter = [
        "state",
        "because",
        "weeks",
        "next_on",
        ("failed_on", admin.EmptyFieldListFilter),
    ]
    list_select_related = ["product"]
    search_fields = ["email", "name", "id"]
    exclude = ["price", "new_price", "reminded_on"]
    readonly_fields = ["agreed"]
    inlines = [OrderInline]
    # counting very many is slow
    paginator = CappedPaginator
    show_full_result_count = False

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Refuse: customers subscribe in the shop."""
        return False

    def has_change_permission(self, _request: HttpRequest, _row: Any = None) -> bool:
        """Refuse: see the class."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses, with that of this class before those of subscriptions."""
        halt = self.admin_site.admin_view(self.halt)
        own = path("<uuid:id_>/halt/", halt, name="orders_subscription_halt")
        return [own, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Subscription]:
        """Read the product with each: its name is shown."""
        return super().get_queryset(request).select_related("product")

    def may_halt(self, request: HttpRequest) -> bool:
        """Return whether a user may see subscriptions, and pause or end them."""
        may_change: bool = request.user.has_perm("orders.change_subscription")
        return self.has_view_permission(request) and may_change

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Offer to pause or end it."""
        more = {**(extra_context or {}), "may_halt": self.may_halt(request)}
        return super().change_view(request, object_id, form_url, more)

    def halt(self, request: HttpRequest, id_: UUID) -> HttpResponse:
        """Show the form, or pause or end the subscription and lead back to it."""
        if not self.may_halt(request):
            raise PermissionDenied
        row = get_object_or_404(Subscription, pk=id_)
        address = reverse("admin:orders_subscription_change", args=[id_])
        form = HaltForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            asked = form.cleaned_data
            try:
                ACTS[asked["act"]](id_, Because.STAFF, asked["reason"])
            except acts.Outdated:
                form.add_error("act", f"It is {row.get_state_display()} already.")
            else:
                messages.success(request, "Done; the customer gets a letter.")
                return redirect(address)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Pause or end subscription {self.number(row)}",
            "form": form,
            "number": self.number(row),
            "address": address,
        }
        status = 422 if request.method == "POST" else 200
        template = "admin/orders/subscription/halt.html"
        return TemplateResponse(request, template, context, status=status)

    @admin.display(description="number", ordering="-created_at")
    def number(self, row: Subscription) -> str:
        """Show the number that letters name."""
        return order_number(row.id)

    @admin.display(description="price of one")
    def agreed(self, row: Subscription) -> str:
        """Show the price that was agreed, and the one that was announced."""
        price = format_money(row.price, row.currency)
        if row.new_price is None:
            return price
        return f"{price}; {format_money(row.new_price, row.currency)} from {row.new_price_from}"
