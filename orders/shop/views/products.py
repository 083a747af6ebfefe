"""The product grid and the pages of products."""

from django.db.models import Min
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from orders.lifecycle.message import MAX_QUANTITY
from orders.models import Product
from orders.shop.product_filters import Filters

from .cart import Request

RELATED = 3  # products, one row


@require_safe
@vary_on_headers("HX-Request")
def index(request: Request) -> HttpResponse:
    """Show the products by shelf, filtered."""
    sold = Product.objects.sold()
    kinds = sold.values_list("kind", flat=True).annotate(first=Min("position")).order_by("first")
    filters = Filters(request.GET, kinds=list(kinds))
    shelves: dict[str, list[Product]] = {}
    for product in filters.narrow(sold).counted():
        shelves.setdefault(product.kind, []).append(product)
    address = reverse("shop:index") + filters.query  # to return to, and to share
    context = {
        "filters": filters,
        "shelves": shelves,
        "count": sum(len(shelf) for shelf in shelves.values()),
        "address": address,
    }
    if not request.htmx:
        return render(request, "shop/index.html", context)
    response = render(request, "shop/_grid.html", context)
    # Enter sends the form twice (change and submit); the history gets one entry
    response["HX-Push-Url"] = "false" if request.htmx.current_url_abs_path == address else address
    return response


@require_safe
def product(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a product and others from its shelf."""
    product = get_object_or_404(Product.objects.sold().counted(), slug=slug)
    shelf = Product.objects.available().counted().filter(kind=product.kind)
    others = shelf.exclude(sku=product.sku)
    context = {"product": product, "related": others[:RELATED], "most": MAX_QUANTITY}
    return render(request, "shop/product.html", context)
