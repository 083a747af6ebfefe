"""Pages of a customer's subscriptions: one POST for each act, harmless if repeated."""

from collections.abc import Callable
from datetime import date
from functools import wraps
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from orders.lifecycle.numbers import order_number
from orders.models import Order, Product, Subscription
from orders.rate_limit import Limit
from orders.shop.subscription_forms import SubscriptionForm, values_of
from orders.shop.tariff import tariff
from orders.shop.typed import form_page, typed
from orders.subscriptions import acts, letters
from orders.subscriptions.days import in_words, today
from orders.subscriptions.offers import due_offer

from . import errors
from .account import signed_in
from .redirect import see_other

CHANGES = Limit("subscription", most=30, seconds=600)
SHOWN = 26  # orders: a year of them
OUTDATED = _(
    "The subscription is not as this page showed it any more, so nothing was changed. This is how it "
    "stands now."
)
TOO_FAR = _("That would be more than half a year ahead. You can pause the subscription instead.")
SKIPPED = _("Skipped. The next order is on %(day)s.")
PAUSED = _("Paused. Nothing is ordered until you resume it.")
RESUMED = _("Resumed. The next order is on %(day)s.")
ENDED = _("Ended. We confirm it by e-mail.")
CHANGED = _("Changed, from the next order on.")

Act = Callable[[HttpRequest, UUID], tuple[Subscription, str | Promise]]


@never_cache
@signed_in
@require_safe
def subscriptions(request: HttpRequest) -> HttpResponse:
    """List a customer's subscriptions, those that go on first."""
    # by the index subscription_of_customer
    rows = Subscription.objects.filter(customer=request.user.pk).select_related("product")
    listed = sorted(rows, key=lambda row: row.ended)
    return render(request, "account/subscriptions.html", {"subscriptions": listed})


@never_cache
@signed_in
@require_safe
def subscription(request: HttpRequest, id_: UUID) -> HttpResponse:
    """Show a subscription with what can be done about it."""
    return _show(request, id_)


@never_cache
@signed_in
@sensitive_post_parameters()
@form_page
def change(request: HttpRequest, id_: UUID) -> HttpResponse:
    """Change quantity, rhythm, address and card from the next order on."""
    row = get_object_or_404(_mine(request).select_related("product"), id=id_)
    if request.method != "POST":
        form = SubscriptionForm(initial={**values_of(row), **typed(request)})
        return render(request, "account/subscription_change.html", {"form": form, "row": row})
    form = SubscriptionForm(request.POST)
    if not form.is_valid():
        context = {"form": form, "row": row}
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return render(request, "account/subscription_change.html", context, status=status)
    return act(lambda _request, id_: (acts.change(id_, form.values), CHANGED))(request, id_)


def act(do: Act) -> Callable[[HttpRequest, UUID], HttpResponse]:
    """Restrict an act to the subscription's customer and its rate; show the page as it stands after it."""

    @never_cache
    @signed_in
    @require_POST
    @wraps(do)
    def guarded(request: HttpRequest, id_: UUID) -> HttpResponse:
        get_object_or_404(_mine(request), id=id_)
        if not CHANGES.allows(str(id_)):
            return _show(request, id_, CHANGES.refusal_text, HTTPStatus.TOO_MANY_REQUESTS)
        errors.may_be_repeated(request)
        try:
            with transaction.atomic():
                row, words = do(request, id_)
        except acts.Outdated:
            return _show(request, id_, str(OUTDATED), HTTPStatus.CONFLICT)
        except acts.TooFar:
            return _show(request, id_, str(TOO_FAR), HTTPStatus.CONFLICT)
        messages.success(request, words % {"day": in_words(row.next_on)})
        return see_other(row.get_absolute_url())

    return guarded


@act
def skip(request: HttpRequest, id_: UUID) -> tuple[Subscription, str | Promise]:
    """Leave out the next order, if that is still the one of the page."""
    try:
        on = date.fromisoformat(request.POST.get("on", ""))
    except ValueError:
        raise acts.Outdated from None
    return acts.skip(id_, on), SKIPPED


@act
def pause(_request: HttpRequest, id_: UUID) -> tuple[Subscription, str | Promise]:
    """Pause it."""
    return acts.pause(id_), PAUSED


@act
def resume(request: HttpRequest, id_: UUID) -> tuple[Subscription, str | Promise]:
    """Resume it at the price that was shown."""
    shown = request.POST.get("price", "")
    return acts.resume(id_, int(shown) if shown.isascii() and shown.isdecimal() else 0), RESUMED


@act
def end(_request: HttpRequest, id_: UUID) -> tuple[Subscription, str | Promise]:
    """End it."""
    return acts.end(id_), ENDED


def _mine(request: HttpRequest) -> "Any":
    return Subscription.objects.filter(customer=request.user.pk)


def _show(
    request: HttpRequest, id_: UUID, notice: str = "", status: int = HTTPStatus.OK
) -> HttpResponse:
    """Show a subscription's page in a constant number of queries."""
    row: Subscription = get_object_or_404(_mine(request), id=id_)
    product = Product.objects.get(sku=row.product_id)
    context = {
        "row": row,
        "number": order_number(row.id),
        "product": product,
        "offer": due_offer(row, product, max(row.next_on, today()), tariff),
        "address": letters.address_of(row),
        "orders": _orders(row),
        "notice": notice,
    }
    return render(request, "account/subscription.html", context, status=status)


def _orders(row: Subscription) -> list[dict[str, Any]]:
    """Return the latest orders, each with its row once it has one."""
    placed = list(row.orders.all()[:SHOWN])
    known = Order.objects.in_bulk([order.order for order in placed])
    return [
        {
            "id": order.order,
            "number": order_number(order.order),
            "on": order.on,
            "order": known.get(order.order),
        }
        for order in placed
    ]
