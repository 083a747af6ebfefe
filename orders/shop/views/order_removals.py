"""Remove units of a line from an order, until its parcel is booked."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from orders.lifecycle import removing
from orders.lifecycle.fewer import NothingLeft, NotRemovable
from orders.models import Order
from orders.shop.remove_form import RemoveForm

from .order_changes import NOTHING_LEFT, done, own, show

NOT_REMOVABLE = _(
    "So much of it is not in your order any more, or it is made for you. This is how your order stands."
)
NOT_NOW = _(
    "Nothing can be removed from your order now. This is how it stands; what arrives you can send back."
)


@own
def remove(request: HttpRequest, order: Order) -> HttpResponse:
    """Remove units of a line."""
    form = RemoveForm(request.POST)
    if not form.is_valid():
        problems = [str(problem) for listed in form.errors.values() for problem in listed]
        return show(request, order, problems[0], HTTPStatus.UNPROCESSABLE_ENTITY)
    chosen = form.cleaned_data
    try:
        refusal = removing.remove(order.id, {chosen["sku"]: chosen["units"]}, id_=chosen["id_"])
    except NotRemovable:
        return show(request, order, str(NOT_REMOVABLE), HTTPStatus.CONFLICT)
    except NothingLeft:
        return show(request, order, str(NOTHING_LEFT), HTTPStatus.CONFLICT)
    if refusal:
        return show(request, order, str(NOT_NOW), HTTPStatus.CONFLICT)
    return done(request, order, None)
