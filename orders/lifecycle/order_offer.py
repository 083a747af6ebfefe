"""What an application was promised of its order, as JSON: the API answers with it."""

from typing import Any

from orders.charges import Charges
from orders.handling import Handling

from .message import Message


def charged(charges: Charges) -> dict[str, Any]:
    """Return what an order costs beyond its lines."""
    return {
        "shipping": charges.shipping,
        "discount": charges.discount,
        "discount_code": charges.code,
        "taxes": [
            {"percent": tax.rate / 100, "net": tax.net, "tax": tax.tax} for tax in charges.taxes
        ],
    }


def handled(special: Handling, total: int) -> dict[str, Any]:
    """Return how an order is paid, and when it comes if not at once."""
    at = special.released_at
    return {
        "gift_card_paid": special.gift_card,
        "exchange_paid": special.exchange,
        "to_pay": total - special.paid,
        "released_at": at.isoformat() if at else None,
        "made_within_days": special.days or None,
    }


def offered(message: Message) -> dict[str, Any]:
    """Return the offer of an order that the shop places for an application's one."""
    return {
        **charged(message.charges),
        **handled(message.handling, message.total),
        "total": message.total,
        "currency": message.currency,
        "lines": [{**line.as_json(), "price": line.price} for line in message.lines],
    }
