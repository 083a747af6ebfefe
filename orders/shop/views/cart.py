"""The cart's page and its changes: partials for htmx, redirects otherwise."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.middleware import HtmxDetails

from orders.countries import COUNTRIES, FIRST
from orders.lifecycle.message import MAX_QUANTITY
from orders.models import Product
from orders.shop.accounts import usual_address
from orders.shop.cart import BadQuantity, cart_of, changing, price, read_quantity
from orders.shop.quote import Quote
from orders.shop.tariff import tariff
from orders.visitors import TooManyVisitors

from .redirect import next_path, see_other


class Request(HttpRequest):
    """A request after django-htmx's middleware."""

    htmx: HtmxDetails


@never_cache  # going back must not offer an undo that is no longer possible
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the cart."""
    return render(request, "shop/cart.html", _context(request))


@require_POST
@vary_on_headers("HX-Request")
def add(request: Request) -> HttpResponse:
    """Add a product and stay on the page."""
    product = _sold(request.POST.get("sku", ""))
    if product is None:
        return _stay(request, _("We do not sell this product (any more)."), failed=True)
    try:
        quantity = read_quantity(request.POST.get("quantity", "1"))
        with changing(request) as cart:
            cart.add(product.sku, quantity, price=product.due)
    except (BadQuantity, TooManyVisitors) as problem:
        return _stay(request, str(problem), failed=True, status=_status(problem))
    return _stay(request, _("%(product)s is in your cart.") % {"product": _(product.name)})


@require_POST
@vary_on_headers("HX-Request")
def change(request: Request) -> HttpResponse:
    """Set a product's quantity; 0 or the Remove button removes it."""
    sku = request.POST.get("sku", "")
    if sku not in cart_of(request).quantities:
        return _changed(request, _("This product is not in your cart (any more)."), sku)
    quantity = 0
    if "remove" not in request.POST:
        try:
            quantity = read_quantity(request.POST.get("quantity", ""), least=0)
        except BadQuantity as problem:
            return _changed(request, str(problem), sku)
    product = _sold(sku) if quantity else None  # the page shows the price beside the quantity
    with changing(request) as cart:
        if sku in cart.quantities:  # it may have been removed or ordered meanwhile
            cart.change(sku, quantity, price=product.due if product else None)
    return _changed(request)


@require_POST
@vary_on_headers("HX-Request")
def undo(request: Request) -> HttpResponse:
    """Undo the last removal."""
    try:
        with changing(request) as cart:
            undone = cart.put_back()
    except (BadQuantity, TooManyVisitors) as problem:
        return _changed(request, str(problem))
    return _changed(request, "" if undone else _("There is nothing to put back (any more)."))


def _sold(sku: str) -> Product | None:
    return Product.objects.available().filter(sku=sku[:100].replace("\0", "")).first()


def _context(request: HttpRequest) -> dict[str, Any]:
    cart = cart_of(request)
    removed = _sold(cart.removed.sku) if cart.removed else None
    priced = price(cart)
    context = {"cart": priced, "removed": removed, "most": MAX_QUANTITY}
    if not priced.lines:
        return context
    country = _country(request)
    quote = Quote(priced, tariff(country))
    return {**context, "sums": quote.sums, "notes": quote.notes, "country": COUNTRIES[country]}


def _country(request: HttpRequest) -> str:
    """Return where a visitor's parcels go as far as is known, or where most go."""
    address = usual_address(request.user) if request.user.is_authenticated else None
    return address.country if address and address.country in COUNTRIES else FIRST


def _changed(request: Request, problem: str = "", sku: str = "") -> HttpResponse:
    """Show the cart after a change, or the problem."""
    if request.htmx:
        context = {**_context(request), "problem": problem, "problem_sku": sku}
        return render(request, "shop/_cart.html", context, status=422 if problem else 200)
    if problem:
        messages.error(request, problem)
    return see_other(reverse("shop:cart"))


def _status(problem: Exception) -> int:
    return 429 if isinstance(problem, TooManyVisitors) else 422


def _stay(request: Request, text: str, *, failed: bool = False, status: int = 422) -> HttpResponse:
    if request.htmx:
        context = {"text": text, "failed": failed}
        return render(request, "shop/_added.html", context, status=status if failed else 200)
    messages.add_message(request, messages.ERROR if failed else messages.SUCCESS, text)
    return see_other(next_path(request) or reverse("shop:cart"))
