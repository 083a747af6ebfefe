"""Gift cards that are issued, for an order or by hand, and withdrawn as what they cost is paid back.

A card of an order is issued as the message comes that the order is completed, under the lock of its row: one
for each unit, however often the message comes. Its code is random, and kept until the letter with it is sent;
after that there is a digest. The code is in no task: it is loaded as the letter is sent.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.db import transaction
from django.db.models import F, Sum

from orchestration import api
from orders.currency import shop_currency
from orders.gift_codes import digest, new_code
from orders.handling import from_json
from orders.models import GiftCard, Order

from . import gift_cards, owner_letters
from .emails import Recipient
from .message import APPLICATION, WORKFLOW

GIFT_WORKFLOW = "send_gift_cards"
IN_ONE_LETTER = 50
ENDED = {api.StatusKind.COMPLETED, api.StatusKind.UNDONE}


@dataclass(frozen=True, kw_only=True)
class ByHand:
    """A card that staff issue: `id` once, with an amount in minor units."""

    id: UUID
    amount: int
    name: str
    email: str
    language: str
    reason: str


def settle(orders: Mapping[UUID, bool]) -> None:
    """Issue the cards of completed orders (true), and undo what undone ones (false) did with cards.

    Their rows are locked by the caller. Each is done once, however often.
    """
    if completed := [order for order, is_completed in orders.items() if is_completed]:
        _issue(completed)
    if undone := [order for order, is_completed in orders.items() if not is_completed]:
        _void(undone)
        gift_cards.give_back(undone)


def _issue(orders: Collection[UUID]) -> None:
    known = set(GiftCard.objects.filter(order__in=orders).values_list("order", flat=True))
    for order in Order.objects.filter(id__in=orders).prefetch_related("lines").order_by("id"):
        emailed = from_json(order.handling).emailed
        units = [
            (line.sku, unit, line.unit_price)
            for line in sorted(order.lines.all(), key=lambda line: line.id)
            if line.sku in emailed and order.id not in known
            for unit in range(1, line.quantity + 1)
        ]
        to = Recipient.of(order)
        for start in range(0, len(units), IN_ONE_LETTER):
            letter = uuid5(order.id, f"gift-cards:{start}")
            cards = [
                _new(price, letter, currency=order.currency, order=order.id, sku=sku, unit=unit)
                for sku, unit, price in units[start : start + IN_ONE_LETTER]
            ]
            _send(cards, to, order.email, about=api.TaskHandle(WORKFLOW, str(order.id)))


@transaction.atomic
def by_hand(card: ByHand, *, by: int | None) -> GiftCard:
    """Issue a card, and send its code; the same `id` once."""
    if known := GiftCard.objects.filter(pk=card.id).first():
        return known
    new = _new(card.amount, card.id, currency=shop_currency(), reason=card.reason, by_id=by)
    new.id = card.id
    to = Recipient(order=None, name=card.name, language=card.language)
    _send([new], to, card.email)
    return new


def _new(amount: int, letter: UUID, **of: Any) -> GiftCard:
    code = new_code()
    return GiftCard(
        id=uuid4(),
        digest=digest(code),
        last4=code[-4:],
        amount=amount,
        balance=amount,
        letter=letter,
        unsent=code,
        **of,
    )


def _send(
    cards: Sequence[GiftCard], to: Recipient, email: str, about: api.TaskHandle | None = None
) -> None:
    GiftCard.objects.bulk_create(cards)
    data: dict[str, Any] = {
        "number": to.number or cards[0].last4,
        "email": email,
        "mail": owner_letters.gift_cards(to).as_json(),
    }
    letter = api.Posting(
        workflow=GIFT_WORKFLOW,
        reference=str(cards[0].letter),
        data=data,
        reply_to=APPLICATION,
        about=about,
    )
    api.submit_many([letter])


def load(references: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the codes of letters that are sent now, each with its value (one query, by gift_card_unsent)."""
    codes: dict[str, list[str]] = {}
    cards = GiftCard.objects.filter(letter__in=references).exclude(unsent="")
    for card in cards.order_by("sku", "unit"):
        line = f"{card.unsent} ({api.format_money(card.amount, card.currency)})"
        codes.setdefault(str(card.letter), []).append(line)
    return {letter: {"codes": "\n".join(lines)} for letter, lines in codes.items()}


def receive(messages: Iterable[api.Status]) -> None:
    """Forget the codes whose letters are sent, or will not be, by their status messages."""
    sent = [
        message.reference
        for message in messages
        if message.workflow == GIFT_WORKFLOW and message.kind in ENDED
    ]
    if sent:
        GiftCard.objects.filter(letter__in=sent).exclude(unsent="").update(unsent="")


def spent(order: Order) -> int:
    """Return what was paid with the cards that an order bought: that is not paid back (one query)."""
    if not from_json(order.handling).emailed:
        return 0
    sums = GiftCard.objects.filter(order=order.id).aggregate(
        spent=Sum(F("amount") - F("balance") - F("withdrawn"))
    )
    return int(sums["spent"] or 0)


def withdraw_until(order: Order, back: int) -> int:
    """Withdraw from the cards that an order bought what is paid back beyond the price of its other goods.

    `back` is the sum of its refunds, under the lock of its row; less than before where one was undone.
    Returns what the cards lack for that, as it is spent.
    """
    gifts: int = (order.handling or {}).get("gifts", 0)
    if not gifts:
        return 0
    cards = gift_cards.locked(GiftCard.objects.filter(order=order.id).order_by("pk"))
    left: int = max(0, back - (order.total - gifts)) - sum(card.withdrawn for card in cards)
    for card in cards:
        moved = max(-card.withdrawn, min(left, card.balance))
        GiftCard.objects.filter(pk=card.pk).update(
            balance=F("balance") - moved, withdrawn=F("withdrawn") + moved
        )
        left -= moved
    return max(0, left)


def _void(orders: Collection[UUID]) -> None:
    cards = gift_cards.locked(GiftCard.objects.filter(order__in=orders, void=False).order_by("pk"))
    for card in cards:
        GiftCard.objects.filter(pk=card.pk).update(
            void=True, balance=0, withdrawn=F("withdrawn") + card.balance
        )
