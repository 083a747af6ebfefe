"""Say that a parcel has not arrived."""

from http import HTTPStatus
from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from orders.lifecycle import claims
from orders.models import Order

from .order_changes import done, own, show

LONGEST = 60  # characters of a tracking number
NOT_CLAIMABLE = _("We cannot look for this parcel now. Please write to us.")


@own
def ask(request: HttpRequest, order: Order) -> HttpResponse:
    """Have staff look for a parcel."""
    parcel = request.POST.get("parcel", "")[:LONGEST].replace("\0", "")
    try:
        claims.ask(order.id, parcel, id_=uuid4())
    except claims.NotClaimable:
        return show(request, order, str(NOT_CLAIMABLE), HTTPStatus.CONFLICT)
    return done(request, order, None)
