"""Place the order of a subscription for a day, once.

The order's id follows from both, and a unique constraint holds the day; so a repeat places nothing twice.
"""

from datetime import date
from uuid import UUID, uuid5

from orders.lifecycle import placement
from orders.lifecycle.message import Message, fingerprint
from orders.models import Subscription, SubscriptionOrder

from .letters import address_of
from .offers import Offer

FAIRNESS = "subscriptions"  # they take turns with the orders of the checkout, as one


def order_id(subscription: UUID, on: date) -> UUID:
    """Return the id of the order of a day."""
    return uuid5(subscription, on.isoformat())


def place(of: Subscription, on: date, offer: Offer) -> UUID:
    """Place the order of a day and note it, in the caller's transaction; return its id.

    The caller has the lock of the subscription's row. Raises `placement.TooMuch` above the largest total.
    """
    order = order_id(of.id, on)
    address = address_of(of)
    message = Message(
        order=order,
        email=of.email,
        address=address,
        payment_method=of.payment_method,
        currency=offer.currency,
        total=offer.total,
        lines=[offer.line],
        confirmation=placement.confirmation(
            order, of.name, offer.total, offer.currency, of.language, offer.charges
        ),
        charges=offer.charges,
        customer=of.customer_id,
        language=of.language,
    )
    SubscriptionOrder.objects.create(
        order=order,
        subscription=of,
        on=on,
        unit_price=offer.line.unit_price,
        payment_method=of.payment_method,
    )
    placement.place(message, fingerprint(message.as_json()), fairness_key=FAIRNESS)
    return order
