"""Changes of an order by its customer: one POST each, harmless if repeated."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from orchestration.api import Refusal
from orders.lifecycle import access, changes
from orders.lifecycle.fewer import NothingLeft
from orders.lifecycle.tracking import TOO_LATE
from orders.models import Order
from orders.rate_limit import Limit
from orders.shop.forms import OtherCardForm

from . import errors
from . import order as order_page
from .redirect import see_other

CHANGES = Limit("mend", most=20, seconds=600)
LONGEST_SKU = 100
ALREADY = _(
    "That is done already, or your order has moved on since you opened the page. This is how it "
    "stands now."
)
CANCELLED_BEFORE = _("Your order is being cancelled already, or was. Nothing was done twice.")
NOT_IN_ORDER = _("This product is not in your order (any more).")
NOTHING_LEFT = _(
    "Nothing would be left of your order without it. You can cancel the order instead."
)
REFUSED = {
    Refusal.IRREVERSIBLE: TOO_LATE,
    Refusal.NOT_UNDOABLE: CANCELLED_BEFORE,
}

Action = Callable[[HttpRequest, Order], HttpResponse]


def own(action: Action) -> Callable[[HttpRequest, UUID], HttpResponse]:
    """Restrict an action to visitors who may see all of the order, and limit its rate."""

    @never_cache
    @require_POST
    @wraps(action)
    def guarded(request: HttpRequest, order_id: UUID) -> HttpResponse:
        order = Order.objects.filter(id=order_id).first()
        if order is None or not access.may_see(request, order_id, order.customer_id):
            raise Http404
        if not CHANGES.allows(str(order_id)):
            return show(request, order, CHANGES.refusal_text, HTTPStatus.TOO_MANY_REQUESTS)
        errors.may_be_repeated(request)
        errors.may_be_ordered(request)
        return action(request, order)

    return guarded


@own
def card(request: HttpRequest, order: Order) -> HttpResponse:
    """Pay with another card."""
    form = OtherCardForm(request.POST)
    if not form.is_valid():
        problems = [str(problem) for listed in form.errors.values() for problem in listed]
        return show(request, order, problems[0], HTTPStatus.UNPROCESSABLE_ENTITY)
    chosen = form.cleaned_data
    return done(
        request, order, changes.other_card(order.id, chosen["attempt"], chosen["payment_method"])
    )


@own
def leave_out(request: HttpRequest, order: Order) -> HttpResponse:
    """Continue without a product that is sold out."""
    sku = request.POST.get("sku", "")[:LONGEST_SKU].replace("\0", "")
    if not order.lines.filter(sku=sku).exists():
        return show(request, order, str(NOT_IN_ORDER), HTTPStatus.CONFLICT)
    try:
        return done(request, order, changes.leave_out(order.id, _attempt(request), sku))
    except NothingLeft:
        return show(request, order, str(NOTHING_LEFT), HTTPStatus.CONFLICT)


@own
def wait(request: HttpRequest, order: Order) -> HttpResponse:
    """Wait for a product that is sold out."""
    return done(request, order, changes.wait_for_stock(order.id, _attempt(request)))


@own
def cancel(request: HttpRequest, order: Order) -> HttpResponse:
    """Cancel the order before it is shipped."""
    return done(request, order, changes.cancel(order.id))


def done(request: HttpRequest, order: Order, refusal: Refusal | None) -> HttpResponse:
    """Redirect to the order's page, or show it with the refusal (409)."""
    if refusal is not None:
        return show(request, order, str(REFUSED.get(refusal, ALREADY)), HTTPStatus.CONFLICT)
    if "t" in request.GET:
        return see_other(access.link(order.id))
    return see_other(reverse("shop:order", args=[order.id]))


def show(request: HttpRequest, order: Order, notice: str, status: int) -> HttpResponse:
    """Show the order's page with a notice."""
    return order_page.show(request, order.id, notice=notice, status=status)


def _attempt(request: HttpRequest) -> int:
    """Return the failed attempt that the customer saw; 0, which never exists, if it is missing."""
    text = request.POST.get("attempt", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
