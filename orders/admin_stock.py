"""The stock in the admin: what the inventory says of each warehouse, and what staff corrected of it."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.timesince import timesince

from orchestration.api import CappedPaginator

from .admin_correction import correction_page
from .admin_read_only import ReadOnly
from .models import Product, StockCorrection, StockLevel
from .models.stock import on_hand
from .stock.levels import CORRECTING

LATEST = 5  # corrections on a product's page
MAY_CORRECT = "orders.add_stockcorrection"


def mark(units: int | None) -> str:
    """Show a number of units, with a word where they are few or none."""
    if units is None:
        return "not known"
    if units > settings.LOW_STOCK:
        return f"{units:,}"
    word = "out" if units <= 0 else "low"
    return format_html('{} <span class="mark {}">{}</span>', f"{units:,}", word, word)


class Few(admin.SimpleListFilter):
    """Rows with few units, or none."""

    title = "units on hand"
    parameter_name = "left"
    field = "on_hand"

    def lookups(self, _request: HttpRequest, _admin: Any) -> list[tuple[str, str]]:
        """Return the choices."""
        return [("low", f"{settings.LOW_STOCK} or less"), ("out", "none")]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Narrow the list."""
        most = {"low": settings.LOW_STOCK, "out": 0}.get(self.value() or "")
        return queryset if most is None else queryset.filter(**{f"{self.field}__lte": most})


class FewOfProduct(Few):
    """Products with few units in all warehouses together, or none."""

    field = "units"


class WithStock(admin.ModelAdmin):  # type: ignore[type-arg] # no generic at run time
    """Products with their stock: in the list its sum, on a product's page each warehouse."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the units on hand, a look into the index stock_level_once for each."""
        units = Subquery(on_hand().filter(product=OuterRef("pk")))
        products: QuerySet[Any] = super().get_queryset(request).annotate(units=units)
        return products

    @admin.display(description="on hand", ordering="units")
    def units(self, product: Any) -> str:
        """Show the units on hand in all warehouses; nothing of what no warehouse has."""
        elsewhere = product.is_gift_card or product.made_within_days
        return "-" if elsewhere and product.units is None else mark(product.units)

    def render_change_form(
        self,
        request: HttpRequest,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Show each warehouse of a product that is there, and the last corrections."""
        if obj is not None and request.user.has_perm("orders.view_stocklevel"):
            rows = list(StockLevel.objects.filter(product=obj))
            latest = StockCorrection.objects.filter(product=obj).select_related("by")
            context["stock"] = {
                "levels": [(row, mark(row.on_hand), correction_address(row)) for row in rows],
                "elsewhere": [
                    (name, correction_address(StockLevel(product=obj, warehouse=name)))
                    for name in warehouses()
                    if rows and name not in {row.warehouse for row in rows}
                ],
                "corrections": latest[:LATEST],
                "may_correct": may_correct(request),
            }
        return super().render_change_form(request, context, add, change, form_url, obj)


@admin.register(StockLevel)
class StockLevelAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """What each warehouse has, by the inventory's last word."""

    list_display = ["product", "sku", "warehouse", "free", "reserved", "as_of", "act"]
    list_display_links = None  # the row has nothing more to show
    list_filter = ["warehouse", Few]
    list_select_related = ["product"]
    search_fields = ["product__name", "product__sku"]
    paginator = CappedPaginator
    show_full_result_count = False

    def get_list_display(self, request: HttpRequest) -> Any:
        """Offer to correct a level to those who may."""
        return self.list_display if may_correct(request) else self.list_display[:-1]

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses, with that of the form before those of levels."""
        correct = self.admin_site.admin_view(self.correct)
        return [path("correct/", correct, name="orders_stocklevel_correct"), *super().get_urls()]

    def correct(self, request: HttpRequest) -> HttpResponse:
        """Show the form of a correction of one product in one warehouse, or ask for it."""
        if not may_correct(request):
            raise PermissionDenied
        sku, warehouse = request.GET.get("product", ""), request.GET.get("warehouse", "")
        if "\0" in sku + warehouse:  # no column can hold it
            raise Http404
        product = get_object_or_404(Product, pk=sku)
        level = StockLevel.objects.filter(product=product, warehouse=warehouse).first()
        if level is None and warehouse not in warehouses():
            raise Http404("No warehouse has this name.")
        level = level or StockLevel(product=product, warehouse=warehouse, on_hand=0, reserved=0)
        context = {**self.admin_site.each_context(request), "opts": self.opts}
        return correction_page(request, level, context, note=self.log_change)

    @admin.display(description="SKU", ordering="product__sku")
    def sku(self, level: StockLevel) -> str:
        """Link to the product."""
        address = reverse("admin:orders_product_change", args=[level.product_id])
        return format_html('<a href="{}">{}</a>', address, level.product_id)

    @admin.display(description="on hand", ordering="on_hand")
    def free(self, level: StockLevel) -> str:
        """Show the units on hand, and whether they are few."""
        return mark(level.on_hand)

    @admin.display(description="as of", ordering="read_at")
    def as_of(self, level: StockLevel) -> str:
        """Show how old this is."""
        return f"{timesince(level.read_at)} ago"

    @admin.display(description="change")
    def act(self, level: StockLevel) -> str:
        """Link to the form that corrects it."""
        return format_html(
            '<a href="{}">Correct<span class="visually-hidden"> {}</span>…</a>',
            correction_address(level),
            level,
        )


@admin.register(StockCorrection)
class StockCorrectionAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg] # as above
    """What staff corrected: when, who, why, and how it ended."""

    list_display = ["created_at", "product", "warehouse", "kind", "units", "state", "by"]
    list_filter = ["state", "kind", "warehouse", "created_at"]
    list_select_related = ["product", "by"]
    search_fields = ["product__name", "product__sku"]
    fields = ["product", "warehouse", "kind", "units", "expected", "change", "reason", "state",
              "refusal", "by", "created_at", "task"]  # fmt: skip
    readonly_fields = ["task"]
    paginator = CappedPaginator
    show_full_result_count = False

    @admin.display(description="task")
    def task(self, correction: StockCorrection) -> str:
        """Link to its task in the operators' pages."""
        address = reverse("ops:started", args=[CORRECTING, correction.pk])
        return format_html('<a href="{}">{}</a>', address, CORRECTING)


def may_correct(request: HttpRequest) -> bool:
    """Return whether a user may see the stock and correct it."""
    return request.user.has_perms(["orders.view_stocklevel", MAY_CORRECT])


def warehouses() -> list[str]:
    """Return the warehouses that have anything, by name."""
    names = StockLevel.objects.order_by("warehouse").values_list("warehouse", flat=True)
    return list(names.distinct())


def correction_address(level: StockLevel) -> str:
    """Return the address of the form that corrects a level."""
    asked = {"product": level.product_id, "warehouse": level.warehouse}
    return f"{reverse('admin:orders_stocklevel_correct')}?{urlencode(asked)}"
