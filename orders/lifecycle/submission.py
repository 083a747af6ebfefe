"""The shop's hook in the submission process: writes orders with their tasks (P19)."""

from collections.abc import Sequence

from django.db.models import F

from orchestration.api import Refused, Submitted
from orders.models import Exchange, GiftUse, Order, OrderLine, Product

from .fields import Malformed
from .message import Message, fingerprint, public, read


def record(submitted: Sequence[Submitted]) -> None:
    """Write the orders of a batch of messages; raise `Refused` if one is permanently invalid.

    A message of a newer release raises `NewerFormat`, and waits for a worker of that release.
    """
    messages = [_read(submission) for submission in submitted]
    _refuse_unknown_products(messages)
    _refuse_unpaid(messages)
    _refuse_unexchanged(messages)
    Order.objects.bulk_create(
        _order(message, fingerprint(public(submission.data)))
        for message, submission in zip(messages, submitted, strict=True)
    )
    OrderLine.objects.bulk_create(
        OrderLine(
            order_id=message.order,
            sku=line.sku,
            name=line.name,
            unit_price=line.unit_price,
            quantity=line.quantity,
        )
        for message in messages
        for line in message.lines
    )


def _read(submission: Submitted) -> Message:
    try:
        message = read(submission.data)
    except Malformed as problem:
        raise Refused(f"not a valid order: {problem}") from problem
    if str(message.order) != submission.reference:
        raise Refused(f"order {message.order} does not match the reference {submission.reference}")
    return message


def _refuse_unknown_products(messages: Sequence[Message]) -> None:
    """Refuse unknown products; prices that the customer agreed to stay.

    Staff may add the product and retry the submission.
    """
    skus = {line.sku for message in messages for line in message.lines}
    known = set(Product.objects.filter(sku__in=skus).values_list("sku", flat=True))
    if unknown := skus - known:
        raise Refused(f"unknown product {', '.join(sorted(unknown))}")


def _refuse_unpaid(messages: Sequence[Message]) -> None:
    """Refuse an order that names a part which no gift card paid; most have none (no query)."""
    parts = {
        message.order: message.handling.gift_card
        for message in messages
        if message.handling.gift_card
    }
    if not parts:
        return
    uses = GiftUse.objects.filter(order__in=parts)
    paid = dict(uses.values_list("order", F("amount") - F("returned")))
    if unpaid := [order for order, amount in parts.items() if paid.get(order) != amount]:
        raise Refused(f"no gift card paid for {unpaid[0]}")


def _refuse_unexchanged(messages: Sequence[Message]) -> None:
    """Refuse an order that is not the replacement for what came back; most say it of none (no query)."""
    parts = {
        message.order: message.handling.exchange
        for message in messages
        if message.handling.exchange
    }
    if not parts:
        return
    placed = dict(Exchange.objects.filter(order__in=parts).values_list("order", "amount"))
    if unpaid := [order for order, amount in parts.items() if placed.get(order) != amount]:
        raise Refused(f"nothing that came back pays for {unpaid[0]}")


def _order(message: Message, content: str) -> Order:
    address = message.address
    return Order(
        id=message.order,
        number=message.number,
        email=message.email,
        name=address.name,
        street=address.street,
        postcode=address.postcode,
        city=address.city,
        country=address.country,
        region=address.region,
        total=message.total,
        charges=message.charges.as_json() or None,
        handling=message.handling.as_json(message.lines, message.total) or None,
        currency=message.currency,
        payment_method=message.payment_method,
        fingerprint=content,
        customer_id=message.customer,
        language=message.language,
    )
