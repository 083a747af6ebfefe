"""Ask for a return of part of an order."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from orders.lifecycle import returns
from orders.models import Order
from orders.shop.return_form import ReturnForm

from .order_changes import done, own, show

NOTHING_CHOSEN = _("Please choose what you send back.")
TOO_MANY = _("You have sent some of that back already. This is what you can still send back.")
NOT_RETURNABLE = _("This order cannot be sent back any more.")


@own
def ask(request: HttpRequest, order: Order) -> HttpResponse:
    """Send units back; a label comes by e-mail."""
    form = ReturnForm(request.POST, bought=order.lines.order_by("id"), left={})
    if not form.is_valid():
        problems = [str(problem) for listed in form.errors.values() for problem in listed]
        return show(request, order, problems[0], HTTPStatus.UNPROCESSABLE_ENTITY)
    if not form.units:
        return show(request, order, str(NOTHING_CHOSEN), HTTPStatus.UNPROCESSABLE_ENTITY)
    chosen = form.cleaned_data
    try:
        returns.ask(order.id, form.units, chosen["reason"], id_=chosen["id_"])
    except returns.TooMany:
        return show(request, order, str(TOO_MANY), HTTPStatus.CONFLICT)
    except returns.NotReturnable:
        return show(request, order, str(NOT_RETURNABLE), HTTPStatus.CONFLICT)
    return done(request, order, None)
