"""An order's own page, live until it has ended; and the way to it for those who lost the link."""

import hashlib
import time
from dataclasses import dataclass, replace
from http import HTTPStatus
from math import ceil
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from orders import access, mending
from orders.forms import FindForm, OtherCardForm
from orders.message import order_number
from orders.models import Order
from orders.throttle import Limit
from orders.tracking import CARD, Mend, track
from orders.watching import Taken, Watched, progress, taken, watched

from .redirect import see_other

NEVER = 9_999_999_999  # seconds since 1970
GUESSES = Limit("find", most=30, seconds=600)
NOT_FOUND = _(
    "We found no order with this number and e-mail address. Please compare both with the "
    "confirmation; a new order can take a few seconds to appear here."
)


@never_cache
@require_safe
def order(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Show an order: the thank-you page, and where it stands."""
    return show(request, order_id)


@never_cache
@require_safe
@vary_on_headers("HX-Request")
def status(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Return the live part of an order's page, or 204 while it is as the browser has it."""
    visit = _visit(request, order_id)
    if _seen(request, visit.version):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    context = _context(request, visit)
    context["say"] = request.GET.get("s", context["tracking"].said) != context["tracking"].said
    return render(request, "shop/_status.html", context)


def show(
    request: HttpRequest, order_id: UUID, *, notice: str = "", status: int = HTTPStatus.OK
) -> HttpResponse:
    """Show an order's page with a notice, and under another status.

    Whoever gets a notice has shown that they know of the order, or may see all of it.
    """
    context = {**_context(request, _visit(request, order_id, known=bool(notice))), "notice": notice}
    return render(request, "shop/order.html", context, status=status)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def find(request: HttpRequest) -> HttpResponse:
    """Lead to an order by number and e-mail; a wrong one of the two gets the same answer."""
    if request.method != "POST":
        return render(request, "shop/find.html", {"form": FindForm()})
    form = FindForm(request.POST)
    if not GUESSES.allows_address(request):
        context = {"form": form, "problem": GUESSES.excuse}
        return render(request, "shop/find.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    if form.is_valid():
        found = Order.objects.filter(
            number=form.cleaned_data["number"], email__iexact=form.cleaned_data["email"]
        ).first()
        if found:
            return see_other(access.link(found.id))
        form.add_error(None, NOT_FOUND)
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return render(request, "shop/find.html", {"form": form}, status=status)


@dataclass(frozen=True, kw_only=True)
class Visit:
    """Somebody at an order's page: what they may see, and do (`own`)."""

    order: Watched
    own: bool
    full: bool

    @cached_property
    def version(self) -> str:
        """A short text that changes when what they see does, but by time alone."""
        shown = repr((self, translation.get_language()))
        return hashlib.sha256(shown.encode()).hexdigest()[:16]


def _visit(request: HttpRequest, order_id: UUID, *, known: bool = False) -> Visit:
    """Return what this request may see of an order; without the right to, nothing personal.

    `known`: the request proves that it knows of the order, so that a stub betrays nothing.
    """
    order = watched(order_id)
    if order is None:
        raise Http404
    own = access.may_see(request, order_id, order.customer)
    full = own or access.may_look(request, order_id)
    if not full and order.customer is not None and not known:
        raise Http404
    return Visit(order=order, own=own, full=full)


def _seen(request: HttpRequest, version: str) -> bool:
    """Say whether the browser has this version, and time has not changed it since."""
    has, _, until = request.GET.get("v", "").partition("-")
    return has == version and f"{time.time():010.0f}" < until


def _context(request: HttpRequest, visit: Visit) -> dict[str, Any]:
    """Return what the page shows. The version is read first: what happens meanwhile is news."""
    version, order_id = visit.version, visit.order.id
    order = taken(order_id) if visit.order.taken and visit.full else None
    tracking = track(
        progress(order_id) if visit.order.taken else None,
        placed_at=visit.order.placed_at,
        now=timezone.now(),
        aside=visit.order.aside,
        waits=visit.order.waits,
        asked=visit.order.asked if visit.full else None,
    )
    if not visit.own:
        tracking = replace(tracking, mends=(), cancellable=False)  # not in anybody's name
    if not visit.full:
        tracking = tracking.redacted()
    until = ceil(tracking.until.timestamp()) if tracking.until else NEVER
    link = {name: request.GET[name] for name in ("t", "look") if name in request.GET}
    query = {"v": f"{version}-{until:010}", "s": tracking.said, **link}
    return {
        "id": order_id,
        "number": order_number(order_id),
        "order": order,
        "full": visit.full,
        "tracking": tracking,
        "link": f"?{urlencode(link)}" if link else "",
        "mends": [_mend(mend, order_id, order) for mend in tracking.mends] if order else [],
        "poll": f"{reverse('shop:order_status', args=[order_id])}?{urlencode(query)}",
    }


def _mend(mend: Mend, order_id: UUID, order: Taken) -> dict[str, Any]:
    """Return what the customer is offered: a choice of cards, or what to do without a product."""
    if mend.step == CARD:
        return {"mend": mend, "cards": OtherCardForm(attempt=mend.attempt)}
    gone = next((line for line in order.lines if line.sku == mend.sku), None)
    waits = mending.may_wait(order_id)
    return {"mend": mend, "gone": gone, "others": len(order.lines) > 1, "waits": waits}
