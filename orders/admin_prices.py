"""What the shop's owner sets in the admin beside products: dated prices, tax, shipping, discounts."""

import re
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from orchestration.api import format_money

from .amount_fields import AmountsForm, InCurrency
from .countries import COUNTRIES
from .lifecycle.sums import percentage
from .models import DatedPrice, DiscountCode, ShippingPrice, TaxRate

CODE = re.compile("[A-Z0-9-]+")


class DatedPriceForm(InCurrency):
    """A price from a moment on."""

    amounts = {"price": 1}

    def clean_starts_at(self) -> datetime:
        """Refuse a moment that another price begins at; a form of an inline does not by itself."""
        at: datetime = self.cleaned_data["starts_at"]
        if DatedPrice.objects.filter(product=self.instance.product_id, starts_at=at).exists():
            raise ValidationError("Another price begins at this moment. Delete it first.")
        return at


class DatedPriceInline(admin.StackedInline):  # type: ignore[type-arg] # no generic at run time
    """The prices of a product from a date on; the one that began last is shown to customers.

    One that is wrong is deleted and added anew: so two people at once cannot mix theirs.
    Stacked, as the lines of orders are.
    """

    model = DatedPrice
    extra = 0
    fields = ["starts_at", "amount"]
    readonly_fields = ["starts_at", "amount"]

    @admin.display(description="price")
    def amount(self, price: DatedPrice) -> str:
        """Show the price with its currency."""
        return format_money(price.price, price.currency)

    def has_add_permission(self, _request: HttpRequest, _product: Any = None) -> bool:
        """Refuse: that is the other inline's."""
        return False

    def has_change_permission(self, _request: HttpRequest, _price: Any = None) -> bool:
        """Refuse: see the class."""
        return False


class NewDatedPriceInline(admin.StackedInline):  # type: ignore[type-arg] # as above
    """A price to add to a product."""

    model = DatedPrice
    form = DatedPriceForm
    extra = max_num = 1
    verbose_name = "new dated price"
    verbose_name_plural = "new dated prices"

    def get_queryset(self, request: HttpRequest) -> QuerySet[DatedPrice]:
        """Return none: the other inline has those that are there."""
        return super().get_queryset(request).none()

    def has_change_permission(self, _request: HttpRequest, _price: Any = None) -> bool:
        """Refuse: see the other inline."""
        return False


class TaxRateForm(AmountsForm):
    """A rate as people write it: 19 or 5.5."""

    percentages = {"percent": 0}


@admin.register(TaxRate)
class TaxRateAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """The tax rates by country and class; orders keep the rates that they were placed at."""

    form = TaxRateForm
    list_display = ["country_name", "tax_class", "rate"]
    list_filter = ["tax_class"]
    search_fields = ["country"]

    @admin.display(description="country", ordering="country")
    def country_name(self, rate: TaxRate) -> str:
        """Show the country's name."""
        return str(COUNTRIES.get(rate.country, rate.country))

    @admin.display(description="rate", ordering="percent")
    def rate(self, rate: TaxRate) -> str:
        """Show the rate with its unit."""
        return f"{percentage(rate.percent)} %"


class ShippingPriceForm(InCurrency):
    """What delivery costs."""

    amounts = {"price": 0, "free_from": 0}


@admin.register(ShippingPrice)
class ShippingPriceAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """What delivery costs by country, and from which price of the goods on it is free."""

    form = ShippingPriceForm
    list_display = ["country_name", "amount", "free"]

    @admin.display(description="country", ordering="country")
    def country_name(self, price: ShippingPrice) -> str:
        """Show the country's name."""
        return str(COUNTRIES.get(price.country, "Other countries"))

    @admin.display(description="price", ordering="price")
    def amount(self, price: ShippingPrice) -> str:
        """Show the price with its currency."""
        return format_money(price.price, price.currency)

    @admin.display(description="free from", ordering="free_from")
    def free(self, price: ShippingPrice) -> str:
        """Show from which price of the goods on it is free."""
        return "never" if price.free_from is None else format_money(price.free_from, price.currency)


class DiscountCodeForm(InCurrency):
    """A code, kept in capitals."""

    amounts = {"amount": 0, "minimum": 0}
    percentages = {"percent": 0}

    def clean_code(self) -> str:
        """Return the code as customers' input is compared with it."""
        code = str(self.cleaned_data["code"]).strip().upper()
        if not CODE.fullmatch(code):
            raise ValidationError("Use letters, digits and hyphens only.", code="invalid")
        return code


@admin.register(DiscountCode)
class DiscountCodeAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """The discount codes; one that was used is deactivated instead of deleted."""

    form = DiscountCodeForm
    list_display = ["code", "reduction", "starts_at", "ends_at", "used", "most", "active"]
    list_filter = ["active"]
    search_fields = ["code"]
    readonly_fields = ["used"]

    @admin.display(description="takes off")
    def reduction(self, code: DiscountCode) -> str:
        """Show the percentage or the amount."""
        if code.percent:
            return f"{percentage(code.percent)} %"
        return format_money(code.amount, code.currency)

    def has_delete_permission(self, request: HttpRequest, code: DiscountCode | None = None) -> bool:
        """Refuse for a code that orders were placed with: its limits count them."""
        allowed: bool = super().has_delete_permission(request, code)
        return allowed and not (code and code.used)

    def get_actions(self, _request: HttpRequest) -> dict[str, Any]:
        """Offer none: deleting several at once would pass by the rule above."""
        return {}
