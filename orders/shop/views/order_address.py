"""Change where an order goes, until its parcel is booked."""

from http import HTTPStatus
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from orders.lifecycle import access, readdressing
from orders.lifecycle.loading import ADDRESS
from orders.lifecycle.numbers import order_number
from orders.models import Order
from orders.shop.readdress_form import ReaddressForm
from orders.shop.typed import form_page, typed

from .order_changes import CHANGES, done, show

NOT_NOW = _("The address cannot be changed now. This is how your order stands.")


@never_cache
@sensitive_post_parameters()
@form_page
def change(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Show the form, or ask for another address."""
    order = Order.objects.filter(id=order_id).first()
    if order is None or not access.may_see(request, order_id, order.customer_id):
        raise Http404
    if not readdressing.may_change(order):
        return _not_now(request, order)
    if request.method != "POST":
        known = {name: getattr(order, name) for name in ADDRESS}
        form = ReaddressForm(initial={**known, **typed(request)}, country=order.country)
        return _form(request, order, form)
    if not CHANGES.allows(str(order_id)):
        return show(request, order, CHANGES.refusal_text, HTTPStatus.TOO_MANY_REQUESTS)
    form = ReaddressForm(request.POST, country=order.country)
    if not form.is_valid():
        return _form(request, order, form)
    if readdressing.readdress(order.id, form.address()):
        return _not_now(request, order)
    return done(request, order, None)


def _not_now(request: HttpRequest, order: Order) -> HttpResponse:
    if request.method == "POST":
        return show(request, order, str(NOT_NOW), HTTPStatus.CONFLICT)
    messages.warning(request, str(NOT_NOW))
    return done(request, order, None)


def _form(request: HttpRequest, order: Order, form: ReaddressForm) -> HttpResponse:
    link = f"?t={request.GET['t']}" if "t" in request.GET else ""
    context = {"form": form, "id": order.id, "number": order_number(order.id), "link": link}
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.errors else HTTPStatus.OK
    return render(request, "shop/readdress.html", context, status=status)
