"""Gift cards in the admin: what is on each, and a form that issues one by hand."""

from typing import Any
from uuid import uuid4

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from orchestration.api import CappedPaginator, currency_digits, format_money

from .admin_read_only import ReadOnly
from .amount_fields import ScaledField
from .currency import shop_currency
from .lifecycle import gift_issue
from .lifecycle.numbers import order_number
from .models import GiftCard, GiftUse
from .money import largest_price

REASON = 200  # characters


class IssueForm(forms.Form):
    """A gift card for a customer, and why."""

    id_ = forms.UUIDField(widget=forms.HiddenInput)  # the same page sent twice is one card
    name = forms.CharField(max_length=100, help_text="The letter greets by it.")
    email = forms.EmailField(label="e-mail", help_text="The code goes there, and nowhere else.")
    language = forms.ChoiceField(choices=settings.LANGUAGES)
    reason = forms.CharField(max_length=REASON, help_text="For the shop's records.")
    field_order = ["amount", "name", "email", "language", "reason"]

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, initial={"id_": uuid4()})
        currency = shop_currency()
        self.fields["amount"] = ScaledField(
            label=f"Amount ({currency})",
            digits=currency_digits(currency),
            least=1,
            most=largest_price(),
        )
        self.order_fields(self.field_order)

    def card(self) -> gift_issue.ByHand:
        """Return the card that a valid form asks for."""
        asked = dict(self.cleaned_data)
        return gift_issue.ByHand(id=asked.pop("id_"), **asked)


class UseInline(ReadOnly, admin.StackedInline):  # type: ignore[type-arg] # no generic at run time
    """What orders paid with a card."""

    model = GiftUse
    extra = 0
    verbose_name_plural = "paid with it"
    fields = ["paid", "back", "created_at"]
    readonly_fields = ["paid", "back"]

    @admin.display(description="paid")
    def paid(self, use: GiftUse) -> str:
        """Show the amount with its currency, and the order."""
        address = reverse("admin:orders_order_change", args=[use.order])
        amount = format_money(use.amount, use.card.currency)
        return format_html('{} of <a href="{}">{}</a>', amount, address, order_number(use.order))

    @admin.display(description="given back")
    def back(self, use: GiftUse) -> str:
        """Show what came back of it."""
        return format_money(use.returned, use.card.currency)


@admin.register(GiftCard)
class GiftCardAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """Gift cards. Their codes are in the customers' letters alone."""

    list_display = ["ends_in", "created_at", "issued", "left", "void", "bought"]
    list_filter = ["void", "created_at"]
    search_fields = ["last4", "order"]
    fields = ["ends_in", "issued", "left", "back", "void", "bought", "sku", "unit", "reason", "by",
              "created_at"]  # fmt: skip
    readonly_fields = ["ends_in", "issued", "left", "back", "bought"]
    inlines = [UseInline]
    paginator = CappedPaginator
    show_full_result_count = False
    change_list_template = "admin/orders/giftcard/change_list.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[GiftCard]:
        """Read who issued them with them."""
        return super().get_queryset(request).select_related("by")

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses, with the form before those of cards."""
        issue = self.admin_site.admin_view(self.issue)
        return [path("issue/", issue, name="orders_giftcard_issue"), *super().get_urls()]

    def issue(self, request: HttpRequest) -> HttpResponse:
        """Show the form, or issue the card and lead to it."""
        if not self.may_issue(request):
            raise PermissionDenied
        form = IssueForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            card = gift_issue.by_hand(form.card(), by=request.user.pk)
            amount = format_money(card.amount, card.currency)
            messages.success(request, f"A gift card of {amount} is on its way by e-mail.")
            return redirect("admin:orders_giftcard_change", card.pk)
        shown = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Issue a gift card",
            "form": form,
        }
        template = "admin/orders/giftcard/issue.html"
        status = 422 if request.method == "POST" else 200
        return TemplateResponse(request, template, shown, status=status)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Offer the form beside the list."""
        more = {**(extra_context or {}), "may_issue": self.may_issue(request)}
        return super().changelist_view(request, more)

    def may_issue(self, request: HttpRequest) -> bool:
        """Return whether a user may see cards and issue one."""
        return self.has_view_permission(request) and request.user.has_perm("orders.add_giftcard")

    @admin.display(description="code ends in", ordering="last4")
    def ends_in(self, card: GiftCard) -> str:
        """Show the end of the code: more is not known here."""
        return str(card)

    @admin.display(description="issued with", ordering="amount")
    def issued(self, card: GiftCard) -> str:
        """Show the amount with its currency."""
        return format_money(card.amount, card.currency)

    @admin.display(description="balance", ordering="balance")
    def left(self, card: GiftCard) -> str:
        """Show what is left to pay with."""
        return format_money(card.balance, card.currency)

    @admin.display(description="withdrawn")
    def back(self, card: GiftCard) -> str:
        """Show what was taken back."""
        return format_money(card.withdrawn, card.currency)

    @admin.display(description="bought by order")
    def bought(self, card: GiftCard) -> str:
        """Link to the order that bought it."""
        if card.order is None:
            return "issued by hand"
        address = reverse("admin:orders_order_change", args=[card.order])
        return format_html('<a href="{}">{}</a>', address, order_number(card.order))
