"""The page of an order, live until it has ended, and the form to find it."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from math import ceil
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from orchestration.api import Progress, TaskState, format_money
from orders.handling import NONE as ORDINARY
from orders.lifecycle import access, changes, overpaid, parcels, paying, removing
from orders.lifecycle.numbers import order_number
from orders.lifecycle.queries import OrderDetails, PlacedOrder, details, placed_order, progress
from orders.lifecycle.readdressing import is_under_way
from orders.lifecycle.tracking import STOCK, Fix, Tracking, track
from orders.models import Order, Return
from orders.normal import email_key
from orders.rate_limit import Limit
from orders.shop.find_form import FindForm
from orders.shop.forms import OtherCardForm
from orders.shop.remove_form import receipt
from orders.shop.return_form import other_order, section
from orders.shop.typed import form_page, typed

from .redirect import see_other

MOST_ALIKE = 20  # orders that share a number by chance
NEVER = 9_999_999_999  # seconds since 1970
GUESSES = Limit("find", most=30, seconds=600)
NOT_FOUND = _(
    "We found no order with this number and e-mail address. Please compare both with the "
    "confirmation; a new order can take a few seconds to appear here."
)


@never_cache
@require_safe
def order(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Show an order and its tracking."""
    return show(request, order_id)


@never_cache
@require_safe
@vary_on_headers("HX-Request")
def status(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Return the live part of an order's page, or 204 if unchanged."""
    visit = _visit(request, order_id)
    if _unchanged(request, visit.version):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    context = _context(request, visit)
    context["announce"] = (
        request.GET.get("s", context["tracking"].digest) != context["tracking"].digest
    )
    return render(request, "shop/_status.html", context)


def show(
    request: HttpRequest, order_id: UUID, *, notice: str = "", status: int = HTTPStatus.OK
) -> HttpResponse:
    """Show an order's page, with a notice and status if given.

    A notice requires that the request proved knowledge of the order, or may see all of it.
    """
    context = {**_context(request, _visit(request, order_id, known=bool(notice))), "notice": notice}
    return render(request, "shop/order.html", context, status=status)


@never_cache
@form_page
def find(request: HttpRequest) -> HttpResponse:
    """Redirect to an order by number and e-mail; either being wrong gets the same answer."""
    if request.method != "POST":
        return render(request, "shop/find.html", {"form": FindForm(initial=typed(request))})
    form = FindForm(request.POST)
    if not GUESSES.allows_address(request):
        context = {"form": form, "problem": GUESSES.refusal_text}
        return render(request, "shop/find.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    if form.is_valid():
        key = email_key(form.cleaned_data["email"])
        same_number = Order.objects.filter(number=form.cleaned_data["number"])
        for order_id, email in same_number.values_list("id", "email")[:MOST_ALIKE]:
            if email_key(email) == key:
                return see_other(access.link(order_id))
        form.add_error(None, NOT_FOUND)
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return render(request, "shop/find.html", {"form": form}, status=status)


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A visit to an order's page. `full`: may see all of it; `own`: may change it."""

    order: PlacedOrder
    own: bool
    full: bool

    @cached_property
    def version(self) -> str:
        """A digest of what the page shows, except for changes by time alone."""
        shown = repr((self, translation.get_language(), timezone.get_current_timezone_name()))
        return hashlib.sha256(shown.encode()).hexdigest()[:16]


def _visit(request: HttpRequest, order_id: UUID, *, known: bool = False) -> Visit:
    """Return what a request may see of an order; raise 404 for another account's order.

    `known`: the request proved knowledge of the order, so the stub reveals nothing new.
    """
    order = placed_order(order_id)
    if order is None:
        raise Http404
    own = access.may_see(request, order_id, order.customer)
    full = own or access.has_staff_link(request, order_id)
    if not full and order.customer is not None and not known:
        raise Http404
    return Visit(order=order, own=own, full=full)


def _unchanged(request: HttpRequest, version: str) -> bool:
    """Return whether the browser has this version, and it is not outdated by time."""
    has, _, until = request.GET.get("v", "").partition("-")
    return has == version and f"{time.time():010.0f}" < until


def _context(request: HttpRequest, visit: Visit) -> dict[str, Any]:
    """Return the template's context. The version is read first, so later changes get a new one."""
    version, order_id = visit.version, visit.order.id
    order = details(order_id) if visit.order.taken and visit.full else None
    reached = progress(order_id) if visit.order.taken else None
    tracking = track(
        reached,
        placed_at=visit.order.placed_at,
        now=timezone.now(),
        aside=visit.order.aside,
        waits=visit.order.waits,
        asked=visit.order.asked if visit.full else None,
        handling=order.handling if order else ORDINARY,
    )
    if not visit.own:
        tracking = replace(
            tracking, fixes=(), cancellable=False, payment=None
        )  # the customer alone acts
    if not visit.full:
        tracking = tracking.redacted()
    until = ceil(tracking.until.timestamp()) if tracking.until else NEVER
    link = {name: request.GET[name] for name in ("t", "look") if name in request.GET}
    query = {"v": f"{version}-{until:010}", "s": tracking.digest, **link}
    return {
        "id": order_id,
        "number": order_number(order_id),
        "order": order,
        "parcels": parcels.shown(order_id, order.lines) if order and visit.order.parcels else [],
        "full": visit.full,
        "returns": _returns(visit, order, reached) if order else None,
        "replaces": other_order(order.replaces, own=visit.own)
        if order and order.replaces
        else None,
        "receipt": receipt(order.lines, _removable(tracking, order, reached)) if order else [],
        "too_much": _too_much(order, reached) if order and tracking.payment else "",
        "may_readdress": tracking.cancellable and is_under_way(reached),
        "placed_at": visit.order.placed_at,
        "tracking": tracking,
        "link": f"?{urlencode(link)}" if link else "",
        "fixes": [_fix(fix, order_id, order, typed(request)) for fix in tracking.fixes]
        if order
        else [],
        "poll": f"{reverse('shop:order_status', args=[order_id])}?{urlencode(query)}",
    }


def _removable(tracking: Tracking, order: OrderDetails, reached: Progress | None) -> dict[str, int]:
    """Return how many units of each line the visitor may remove."""
    return removing.removable(order) if tracking.cancellable and removing.is_open(reached) else {}


def _too_much(order: OrderDetails, reached: Progress | None) -> str:
    """Return what becomes of what the customer is asked to pay beyond what the order costs now."""
    amount = paying.asked(reached)
    if not order.removed or amount <= order.to_pay:
        return ""
    return overpaid.in_words(reached) % {"asked": format_money(amount, order.currency)}


def _returns(visit: Visit, order: OrderDetails, reached: Progress | None) -> dict[str, Any] | None:
    """Return the context of what comes back, or did not arrive; only completed orders have it."""
    if reached is None or reached.state is not TaskState.PROCESSED:
        return None
    known = Prefetch("returns", Return.objects.select_related("exchange"))
    row = Order.objects.prefetch_related(known, "claims").get(id=visit.order.id)
    return section(row, order.lines, own=visit.own)


def _fix(
    fix: Fix, order_id: UUID, order: OrderDetails, filled: Mapping[str, str]
) -> dict[str, Any]:
    """Return the context of a fix: a choice of cards, or options without a product."""
    if fix.step != STOCK:
        return {
            "fix": fix,
            "cards": OtherCardForm(attempt=fix.attempt, card=filled.get("payment_method")),
        }
    gone = next((line for line in order.lines if line.sku == fix.sku), None)
    waits = changes.may_wait(order_id)
    others = [line for line in order.handling.reserved(order.lines) if line != gone]
    return {"fix": fix, "gone": gone, "others": others, "waits": waits}
