"""Replacements for goods that came back: placed as any order, and paid by what these had cost.

One that is undone, or from which a line is left out, has what it does not need paid back.
"""

from collections.abc import Mapping
from uuid import UUID, uuid5

from django.utils import translation
from django.utils.translation import gettext as _

from orchestration import api
from orders.cards import NO_CARD
from orders.models import Exchange, Order, Placement, Return

from . import exchange_letters, exchanged, placement, refunds
from .exchange_offers import Offer
from .message import Address, Message
from .order_offer import offered


def place(row: Return, offer: Offer, workflow: str) -> bool:
    """Place the replacement of a return whose order is locked, if that much is left of it."""
    order = row.order
    if offer.total > refunds.left_of(order):
        return False
    held = exchanged.of(order)
    if held:
        exchanged.release(held, offer.total)
    message = _message(row, offer)
    Exchange.objects.create(
        order=message.order, of=row, payer=held.payer if held else order, amount=offer.total
    )
    by = Placement.objects.filter(order=order.id).values_list("application", flat=True).first()
    placement.place_replacement(
        message,
        exchange_letters.placed(row, message),
        api.TaskHandle(workflow, str(row.id)),
        application=by or "",
        offer=offered(message) if by else None,
    )
    return True


def settle(orders: Mapping[UUID, bool]) -> None:
    """Pay back what replacements do not need that have ended, once.

    True: completed; false: undone, or not taken. Their rows are locked by the caller.
    """
    mine = Exchange.objects.filter(order__in=orders).order_by("order")
    known = dict(mine.values_list("order", "payer"))
    payers = exchanged.locked(known.values()) if known else {}
    costs = dict(Order.objects.filter(id__in=known).values_list("id", "total"))
    for held in mine.all() if known else ():
        row, payer = mine.filter(order=held.order), payers[held.payer_id]
        if not orders[held.order]:
            row.update(returned=held.amount)
            _pay_back(held, payer, held.left, "undone")
        elif not held.returned:  # nothing has come back of it since its first message
            row.update(amount=costs[held.order])
            _pay_back(held, payer, held.amount - costs[held.order], "left out")


def _pay_back(held: Exchange, payer: Order, amount: int, why: str) -> None:
    if amount:
        with translation.override(payer.language):
            reason = _("You did not get all of what we wanted to send you for your return.")
        refunds.pay_back(payer, amount, reason, id_=uuid5(held.order, why), by=None)


def _message(row: Return, offer: Offer) -> Message:
    order = row.order
    new = uuid5(row.id, "exchange")
    return Message(
        order=new,
        email=order.email,
        address=Address(
            name=order.name,
            street=order.street,
            postcode=order.postcode,
            city=order.city,
            country=order.country,
            region=order.region,
        ),
        payment_method=NO_CARD,
        currency=order.currency,
        total=offer.total,
        lines=offer.lines,
        confirmation=placement.confirmation(
            new,
            order.name,
            offer.total,
            order.currency,
            order.language,
            offer.charges,
            offer.paid,
        ),
        customer=order.customer_id,
        language=order.language,
        charges=offer.charges,
        handling=offer.paid,
    )
