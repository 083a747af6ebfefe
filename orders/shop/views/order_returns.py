"""Ask for a return of part of an order, for money or for other goods."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from orders.lifecycle import access, returns
from orders.lifecycle.exchange_offers import NotExchangeable, TooDear
from orders.lifecycle.message import MAX_QUANTITY
from orders.lifecycle.numbers import order_number
from orders.models import Order
from orders.shop.exchange_wish import NotOffered, offered, wish
from orders.shop.return_form import OTHER, UNITS, AskedForm

from .order_changes import done, own, show
from .redirect import see_other

MOST = 100  # products to choose from: what comes first on the shelf
NOTHING_CHOSEN = _("Please choose what you send back.")
REFUSED: dict[type[Exception], Any] = {
    returns.TooMany: _(
        "You have sent some of that back already. This is what you can still send back."
    ),
    returns.NotReturnable: _("This order cannot be sent back any more."),
    TooDear: _("That costs more than what you send back. Please choose fewer, or something else."),
    NotOffered: _("This product cannot be had now. Please choose something else, or your money."),
    NotExchangeable: _("Gift cards cannot be exchanged. Please choose your money."),
}
ANOTHER_CHOICE = (TooDear, NotOffered)


@own
def ask(request: HttpRequest, order: Order) -> HttpResponse:
    """Send units back, for money or for other goods; a label comes by e-mail."""
    form = _form(order, request.POST)
    if problem := _problem(form):
        return show(request, order, problem, HTTPStatus.UNPROCESSABLE_ENTITY)
    if form.chooses:
        return see_other(_choice_address(request, order))
    chosen = form.cleaned_data
    try:
        wished = wish(form.wished, order.country) if form.wished else None
        returns.ask(order.id, form.units, chosen["reason"], id_=chosen["id_"], wish=wished)
    except tuple(REFUSED) as refusal:
        words = str(REFUSED[type(refusal)])
        if chosen["wish"] == OTHER and isinstance(refusal, ANOTHER_CHOICE):
            messages.warning(request, words)
            return see_other(_choice_address(request, order))
        return show(request, order, words, HTTPStatus.CONFLICT)
    return done(request, order, None)


@never_cache
@require_safe
def choose(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Show what the customer can have for units that come back."""
    order = Order.objects.filter(id=order_id).first()
    if order is None or not access.may_see(request, order_id, order.customer_id):
        raise Http404
    form = _form(order, request.GET)
    problem = _problem(form)
    if not problem and not returns.is_open(order):
        problem = str(REFUSED[returns.NotReturnable])
    try:
        coming = None if problem else returns.coming(order, form.units)
    except returns.TooMany:
        coming, problem = None, str(REFUSED[returns.TooMany])
    if coming is None:
        messages.warning(request, problem)
        return done(request, order, None)
    context = {
        "id": order.id,
        "number": order_number(order.id),
        "link": f"?t={request.GET['t']}" if "t" in request.GET else "",
        "sent": [(name, value) for name, value in request.GET.items() if _is_ours(name)],
        "worth": coming.goods,
        "currency": order.currency,
        "products": offered().costing(1, coming.goods + 1)[:MOST],
        "pieces": range(1, MAX_QUANTITY + 1),
    }
    return render(request, "shop/exchange.html", context)


def _form(order: Order, data: QueryDict) -> AskedForm:
    return AskedForm(data, bought=order.lines.order_by("id"), left={})


def _problem(form: AskedForm) -> str:
    """Return the first thing that is wrong with what was sent, or ""."""
    problems = [str(problem) for listed in form.errors.values() for problem in listed]
    return "" if form.is_valid() and form.units else [*problems, str(NOTHING_CHOSEN)][0]


def _is_ours(name: str) -> bool:
    return name.startswith(UNITS) or name in {"reason", "id_", "wish"}


def _choice_address(request: HttpRequest, order: Order) -> str:
    query = QueryDict(mutable=True)
    for name, value in request.POST.items():
        if _is_ours(name):
            query[name] = str(value)
    if "t" in request.GET:
        query["t"] = request.GET["t"]
    return f"{reverse('shop:order_exchange', args=[order.id])}?{query.urlencode()}"
