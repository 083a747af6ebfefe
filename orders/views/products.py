"""The grid of products, and a page for each."""

from django.db.models import Min
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from orders.filters import Filters
from orders.message import MOST_PER_LINE
from orders.models import Product

from .cart import Request

RELATED = 3  # a line of them


@require_safe
@vary_on_headers("HX-Request")
def index(request: Request) -> HttpResponse:
    """Show what the shop sells, by shelf; kind, price and words narrow it down."""
    sold = Product.objects.sold()
    kinds = sold.values_list("kind", flat=True).annotate(first=Min("position")).order_by("first")
    filters = Filters(request.GET, kinds=list(kinds))
    shelves: dict[str, list[Product]] = {}
    for product in filters.narrow(sold):
        shelves.setdefault(product.kind, []).append(product)
    address = reverse("shop:index") + filters.query  # to come back to, and to give to others
    context = {
        "filters": filters,
        "shelves": shelves,
        "count": sum(len(shelf) for shelf in shelves.values()),
        "address": address,
    }
    if not request.htmx:
        return render(request, "shop/index.html", context)
    response = render(request, "shop/_grid.html", context)
    # Enter changes the field and sends the form: the second time is no further step to go back
    response["HX-Push-Url"] = "false" if request.htmx.current_url_abs_path == address else address
    return response


@require_safe
def product(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one product, and others from its shelf."""
    found = get_object_or_404(Product.objects.sold(), slug=slug)
    others = Product.objects.available().filter(kind=found.kind).exclude(sku=found.sku)
    context = {"product": found, "related": others[:RELATED], "most": MOST_PER_LINE}
    return render(request, "shop/product.html", context)
