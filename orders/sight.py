"""What the customer sees of an order, for the operators who look at its task."""

from uuid import UUID

from django.utils import timezone

from orchestration.api import Sight

from . import snapshots
from .access import look_link
from .models import Order
from .tracking import track

MOODS = {"good": "success", "busy": "info", "slow": "warning", "bad": "error"}


def see(reference: str, personal: bool) -> Sight | None:
    """Return what the page of an order says at this moment, and the way there.

    The sentence names nobody, so all operators read the one that the customer reads. The page does:
    the link to it is only for those who may see personal data. What strangers are shown in its
    place is not what the customer sees, so it is offered to nobody as that.
    """
    order = _order(reference)
    if order is None:
        return None
    seen = track(
        snapshots.of(order),
        placed_at=order.created_at,
        now=timezone.now(),
        waits=order.waits_until is not None,
        asked=order.request,
    )
    return Sight(
        who="the customer",
        sentence=seen.sentence,
        url=look_link(order.id) if personal else "",
        mood=MOODS[seen.mood],
    )


def _order(reference: str) -> Order | None:
    try:
        order_id = UUID(reference)
    except ValueError:
        return None
    return Order.objects.filter(id=order_id).first()
