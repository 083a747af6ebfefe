"""The shop in the Django admin: products are edited there, orders are only looked at."""

from typing import Any

from django.contrib import admin
from django.forms import Field
from django.http import HttpRequest

from .models import Order, OrderLine, Product
from .money import money


class ReadOnly:
    """What the workflow wrote is not for hands: it is what was sent to the partners."""

    def has_add_permission(self, _request: HttpRequest, _parent: Any = None) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, _request: HttpRequest, _thing: Any = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _thing: Any = None) -> bool:
        """Refuse."""
        return False


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # no generic at run time
    """Products. One that was ever sold is made inactive, not deleted: orders name it."""

    list_display = ["name", "sku", "kind", "amount", "stock", "active", "position"]
    list_filter = ["kind", "stock", "active"]
    list_editable = ["stock", "active", "position"]
    search_fields = ["name", "sku"]
    prepopulated_fields = {"slug": ["name"]}

    @admin.display(description="price", ordering="price")
    def amount(self, product: Product) -> str:
        """Show the price with its currency."""
        return money(product.price, product.currency)

    def get_readonly_fields(
        self, _request: HttpRequest, product: Product | None = None
    ) -> tuple[str, ...]:
        """Keep the SKU of a product as it is: it is what the inventory knows it by."""
        return ("sku",) if product else ()

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Field | None:
        """Name the fields in the list's rows for those who do not see the column's head."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field and db_field.name in self.list_editable:
            field.widget.attrs["aria-label"] = field.label
        return field

    def has_delete_permission(self, _request: HttpRequest, _product: Product | None = None) -> bool:
        """Refuse: see the class."""
        return False


class LineInline(ReadOnly, admin.StackedInline):  # type: ignore[type-arg] # as above
    """The lines of an order. Not as a table: Django's has columns whose heads are empty."""

    model = OrderLine
    extra = 0


@admin.register(Order)
class OrderAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """Orders as they were taken, with what the engine last told about them."""

    list_display = ["number", "created_at", "name", "email", "amount", "status"]
    list_filter = ["status", "created_at"]
    search_fields = ["number", "email", "id"]
    exclude = ["snapshot", "asked"]  # what they say is on its task's page
    inlines = [LineInline]
    show_full_result_count = False  # counting a million orders takes longer than looking at one

    @admin.display(description="total", ordering="total")
    def amount(self, order: Order) -> str:
        """Show the total with its currency."""
        return money(order.total, order.currency)
