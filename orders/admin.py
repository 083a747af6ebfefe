"""The shop in the Django admin: products can be edited, orders only viewed."""

import re
from typing import Any

from django.contrib import admin
from django.contrib.staticfiles import finders
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import Field
from django.http import HttpRequest

from orchestration.api import CappedPaginator, format_money

from .admin_prices import DatedPriceInline
from .amount_fields import AmountsForm
from .currency import shop_currency
from .lifecycle import operator_search
from .models import Order, OrderLine, Product

PICTURE = re.compile("[A-Za-z0-9_-]+")


class ReadOnly:
    """Denies changes: these rows are what was sent to the partners."""

    def has_add_permission(self, _request: HttpRequest, _parent: Any = None) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, _request: HttpRequest, _thing: Any = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _thing: Any = None) -> bool:
        """Refuse."""
        return False


class ProductForm(AmountsForm):
    """A product whose picture exists; saved, its price is one in the shop's currency."""

    amounts = {"price": 1}

    def clean(self) -> dict[str, Any] | None:
        """Take the price as an amount in the currency that the field names."""
        self.instance.currency = shop_currency()
        return super().clean()

    def clean_picture(self) -> str:
        """Refuse a name that no picture has: customers would see none."""
        name = str(self.cleaned_data["picture"])
        product = Product(picture=name)
        if not PICTURE.fullmatch(name) or finders.find(product.picture_path) is None:
            raise ValidationError(f"There is no static/{product.picture_path}.", code="missing")
        return name


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # no generic at run time
    """Products; they are deactivated instead of deleted, because orders name them."""

    form = ProductForm
    inlines = [DatedPriceInline]
    list_display = ["name", "sku", "kind", "amount", "stock", "active", "position"]
    list_filter = ["kind", "stock", "active"]
    list_editable = ["stock", "active", "position"]
    search_fields = ["name", "sku"]
    prepopulated_fields = {"slug": ["name"]}

    @admin.display(description="price now", ordering="due")
    def amount(self, product: Product) -> str:
        """Show the price that is due, with its currency."""
        return format_money(product.due, product.currency)

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


@admin.register(Order)
class OrderAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """Orders with the status last reported by the engine."""

    list_display = ["number", "created_at", "name", "email", "amount", "status"]
    list_filter = ["status", "created_at"]
    search_fields = ["number", "email", "id"]
    exclude = ["snapshot", "asked", "total"]  # the task's page shows the first two
    readonly_fields = ["amount"]
    inlines = [LineInline]
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

    @admin.display(description="total", ordering="total")
    def amount(self, order: Order) -> str:
        """Show the total with its currency."""
        return format_money(order.total, order.currency)
