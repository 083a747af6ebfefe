"""What customers do about their own order: a POST each, for nobody else, and harmless if repeated."""

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
from orders import access, mending
from orders.forms import OtherCardForm
from orders.models import Order
from orders.throttle import Limit
from orders.tracking import TOO_LATE

from . import failure
from . import order as order_page
from .redirect import see_other

ACTS = Limit("mend", most=20, seconds=600)
LONGEST_SKU = 100
ALREADY = _(
    "That is done already, or your order has moved on since you opened the page. This is how it "
    "stands now."
)
CANCELLED_BEFORE = _("Your order is being cancelled already, or was. Nothing was done twice.")
NOT_IN_ORDER = _("This product is not in your order (any more).")
ALL_GONE = _("Nothing would be left of your order without it. You can cancel the order instead.")
REFUSED = {
    Refusal.IRREVERSIBLE: TOO_LATE,
    Refusal.NOT_UNDOABLE: CANCELLED_BEFORE,
}

Act = Callable[[HttpRequest, Order], HttpResponse]


def own(act: Act) -> Callable[[HttpRequest, UUID], HttpResponse]:
    """Let an act be done by whoever may see all of the order, and not too often."""

    @never_cache
    @require_POST
    @wraps(act)
    def guarded(request: HttpRequest, order_id: UUID) -> HttpResponse:
        order = Order.objects.filter(id=order_id).first()
        if order is None or not access.may_see(request, order_id, order.customer_id):
            raise Http404
        if not ACTS.allows(str(order_id)):
            return _show(request, order, ACTS.excuse, HTTPStatus.TOO_MANY_REQUESTS)
        failure.may_be_repeated(request)
        failure.may_be_ordered(request)
        return act(request, order)

    return guarded


@own
def card(request: HttpRequest, order: Order) -> HttpResponse:
    """Pay with another card."""
    form = OtherCardForm(request.POST)
    if not form.is_valid():
        problems = [str(problem) for found in form.errors.values() for problem in found]
        return _show(request, order, problems[0], HTTPStatus.UNPROCESSABLE_ENTITY)
    chosen = form.cleaned_data
    return _done(
        request, order, mending.other_card(order.id, chosen["attempt"], chosen["payment_method"])
    )


@own
def leave_out(request: HttpRequest, order: Order) -> HttpResponse:
    """Go on without what is sold out."""
    sku = request.POST.get("sku", "")[:LONGEST_SKU].replace("\0", "")
    if not order.lines.filter(sku=sku).exists():
        return _show(request, order, str(NOT_IN_ORDER), HTTPStatus.CONFLICT)
    try:
        return _done(request, order, mending.leave_out(order.id, _attempt(request), sku))
    except mending.AllGone:
        return _show(request, order, str(ALL_GONE), HTTPStatus.CONFLICT)


@own
def wait(request: HttpRequest, order: Order) -> HttpResponse:
    """Wait for what is sold out."""
    return _done(request, order, mending.wait_for_stock(order.id, _attempt(request)))


@own
def cancel(request: HttpRequest, order: Order) -> HttpResponse:
    """Cancel the order, as long as nothing of it has gone out."""
    return _done(request, order, mending.cancel(order.id))


def _done(request: HttpRequest, order: Order, refusal: Refusal | None) -> HttpResponse:
    """Go to the order's page; say there why nothing was done, if so (409)."""
    if refusal is not None:
        return _show(request, order, str(REFUSED.get(refusal, ALREADY)), HTTPStatus.CONFLICT)
    if "t" in request.GET:
        return see_other(access.link(order.id))
    return see_other(reverse("shop:order", args=[order.id]))


def _show(request: HttpRequest, order: Order, notice: str, status: int) -> HttpResponse:
    return order_page.show(request, order.id, notice=notice, status=status)


def _attempt(request: HttpRequest) -> int:
    """Return the attempt that the customer saw fail; 0, which none is, if that is not told."""
    told = request.POST.get("attempt", "")
    return int(told) if told.isascii() and told.isdecimal() and len(told) < 10 else 0
