"""Paying with gift cards: their balance is taken when an order is placed, and never below nothing.

An amount is taken in the transaction that places the order, under a lock of the card's row, as uses of
discount codes are counted. Orders that are undone give it back.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from orders.currency import shop_currency
from orders.gift_codes import digest
from orders.models import GiftCard, GiftUse
from orders.rate_limit import Limit

# A code has 80 bits; this keeps those who try some from slowing the shop down. Per IP address or application.
GUESSES = Limit("gift-card", most=60, seconds=600)


class NotValid(ValueError):
    """The gift card cannot pay; the text is for the customer."""


def find(code: str) -> int:
    """Return what is left on a card; raise `NotValid` for one that is unknown or empty, all alike."""
    balance = _rows(code).values_list("balance", flat=True).first()
    if not balance:
        raise _unknown()
    return balance


@transaction.atomic
def use(order: UUID, code: str, amount: int) -> None:
    """Take an amount off a card for an order that is placed; raise `NotValid` if it has less."""
    # named fields: the shop's web process may not read all
    row = locked(_rows(code)).values_list("pk", "balance").first()
    if row is None or row[1] < amount:
        raise _unknown()
    GiftUse.objects.create(order=order, card_id=row[0], amount=amount)
    GiftCard.objects.filter(pk=row[0]).update(balance=F("balance") - amount)


def locked(rows: QuerySet[GiftCard]) -> QuerySet[GiftCard]:
    """Have a card's row wait for the placements that it pays, and these for this one."""
    return rows.select_for_update(no_key=True)


@transaction.atomic
def give_back(orders: Iterable[UUID | str]) -> None:
    """Return to the cards what orders took that were undone, once."""
    for use_ in _uses(list(orders)):
        _credit(use_, use_.amount - use_.returned)
        GiftUse.objects.filter(pk=use_.pk).update(returned=F("amount"))


@transaction.atomic
def return_until(order: UUID, returned: int) -> None:
    """Have so much of what an order took be on its card again, over all refunds."""
    for use_ in _uses([order]):
        _credit(use_, returned - use_.returned)
        GiftUse.objects.filter(pk=use_.pk).update(returned=returned)


@transaction.atomic
def take_less(order: UUID, amount: int) -> None:
    """Have an order whose total has become less take so much only."""
    for use_ in _uses([order]):
        _credit(use_, use_.amount - amount)
        GiftUse.objects.filter(pk=use_.pk).update(amount=amount)


def _uses(orders: Sequence[UUID | str]) -> list[GiftUse]:
    """Return the uses of orders, their cards locked in one order: no two wait for each other."""
    uses = list(GiftUse.objects.filter(order__in=orders))
    cards = [use_.card_id for use_ in uses]
    rows = {
        card.pk: card
        for card in (locked(GiftCard.objects.filter(pk__in=cards).order_by("pk")) if cards else ())
    }
    # read again: the first look was before the lock
    again = list(GiftUse.objects.filter(order__in=orders)) if cards else []
    for use_ in again:
        use_.card = rows[use_.card_id]
    return again


def _credit(use_: GiftUse, amount: int) -> None:
    """Add to a card's balance; what comes to a void card is withdrawn at once."""
    column = "withdrawn" if use_.card.void else "balance"
    GiftCard.objects.filter(pk=use_.card_id).update(**{column: F(column) + amount})


def _rows(code: str) -> QuerySet[GiftCard]:
    cards = GiftCard.objects.filter(digest=digest(code), currency=shop_currency(), void=False)
    return cards.order_by("pk")  # the web process may not read by what cards are ordered elsewhere


def _unknown() -> NotValid:
    return NotValid(
        _(
            "We know no gift card with this code that can pay this. Please compare it with the letter, or "
            "pay without it."
        )
    )
