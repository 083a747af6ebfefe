"""The grid of products, and a page for each."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from orders.message import MOST_PER_LINE
from orders.models import Product

RELATED = 4


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show what the shop sells, by shelf."""
    shelves: dict[str, list[Product]] = {}
    for product in Product.objects.filter(active=True):
        shelves.setdefault(product.kind, []).append(product)
    return render(request, "shop/index.html", {"shelves": shelves})


@require_safe
def product(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one product, and others from its shelf."""
    found = get_object_or_404(Product, slug=slug, active=True)
    others = Product.objects.filter(kind=found.kind, active=True).exclude(sku=found.sku)
    context = {"product": found, "related": others[:RELATED], "most": MOST_PER_LINE}
    return render(request, "shop/product.html", context)
