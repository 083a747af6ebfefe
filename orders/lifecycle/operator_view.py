"""The customer's view of an order, for operators at its task."""

from uuid import UUID

from django.utils import timezone

from orchestration.api import ExternalView
from orders.handling import from_json
from orders.models import Order

from . import snapshots
from .access import staff_link
from .tracking import track

MOODS = {"good": "success", "busy": "info", "slow": "warning", "bad": "error"}


def customer_view(reference: str, personal: bool) -> ExternalView | None:
    """Return the sentence on an order's page, and a link to the page.

    The sentence has no personal data, so all operators read what the customer reads. The page has,
    so the link is for operators who may see `personal` data. The stub without personal data is not
    what the customer sees, so it is not linked.
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
        handling=from_json(order.handling),
    )
    return ExternalView(
        who="the customer",
        sentence=seen.sentence,
        url=staff_link(order.id) if personal else "",
        mood=MOODS[seen.mood],
    )


def _order(reference: str) -> Order | None:
    try:
        order_id = UUID(reference)
    except ValueError:
        return None
    return Order.objects.filter(id=order_id).first()
