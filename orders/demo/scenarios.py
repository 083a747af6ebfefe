"""Orders in every state for a demo.

Each scenario places a real order, with faults at the sandbox for that order only, and then acts as
its customer. Once the orders have settled the faults are removed, so that operators can resolve them.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen
from uuid import UUID, uuid4

from django.conf import settings

from orchestration import api
from orders.agents.partner_http import request_json
from orders.cards import Card
from orders.lifecycle import changes, gift_issue, queries, refunds
from orders.lifecycle.paying import CARD
from orders.lifecycle.tracking import STOCK
from orders.models import GiftCard, Product
from orders.money import whole

from . import afterwards, subscribers
from .catalogue import AWAY, GIFT_CARD, GONE, MADE, PREORDER
from .shoppers import FAR, Place, Shoppers

TIMEOUT = 60.0  # seconds for an order to reach its customer's action, and then to settle
PAUSE = 0.3  # seconds between polls
PART = 300  # minor units: less than any order costs
SANDBOX_TIMEOUT = 5.0  # seconds

Fault = dict[str, Any]
Ready = Callable[[api.Progress], bool]
Action = Callable[[UUID, api.Progress], object]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario: card, faults, what is bought `also`, where it goes, and the `act` once `ready`."""

    name: str
    card: Card = Card.VISA
    faults: Sequence[Fault] = ()
    also: str = ""  # a SKU
    only: str = ""  # the SKU of what is bought alone
    to: Place | None = None
    gift_card: int = 0  # issued before it, in whole units of the currency
    ready: Ready | None = None
    act: Action | None = None
    times: int = 1


def failed(step: str) -> Ready:
    """Return a check that a step is in error."""
    return lambda progress: _step(progress, step).state is api.StepState.ERROR


def paid(progress: api.Progress) -> bool:
    """Return whether an order is paid and can be cancelled."""
    return progress.undoable and (
        _step(progress, "capture_payment").state is api.StepState.PROCESSED
    )


def cancel(order: UUID, _progress: api.Progress) -> object:
    """Cancel as the customer."""
    return changes.cancel(order)


def completed(progress: api.Progress) -> bool:
    """Return whether an order is completed."""
    return progress.state is api.TaskState.PROCESSED


def pay_part_back(order: UUID, _progress: api.Progress) -> object:
    """Pay part of it back as staff."""
    return refunds.refund(order, PART, "A mug came with a chip.", id_=uuid4(), by=None)


def use_other_card(order: UUID, progress: api.Progress) -> object:
    """Pay with another card as the customer."""
    return changes.other_card(order, _step(progress, CARD).attempt, Card.VISA)


def leave_out(order: UUID, progress: api.Progress) -> object:
    """Remove the product that is sold out as the customer."""
    return changes.leave_out(order, _step(progress, STOCK).attempt, GONE)


def wait(order: UUID, progress: api.Progress) -> object:
    """Wait for the product that is sold out as the customer."""
    return changes.wait_for_stock(order, _step(progress, STOCK).attempt)


# The mail service is busy for this order, so it is paid but not confirmed yet. Faults are few, so that
# no circuit breaker opens and delays a visitor's first order.
UNCONFIRMED = {"partner": "mail", "fault": "status", "status": 429, "times": 6}
ADDRESS_UNKNOWN = {
    "partner": "shipping", "action": "book", "fault": "reject", "times": 1,
    "code": "address_unknown", "message": "Unknown house number.",
}  # fmt: skip
SCENARIOS = (
    Scenario(name="confirmed", times=14),
    Scenario(name="completed, and part of it paid back", ready=completed, act=pay_part_back),
    Scenario(name="in two parcels", also=AWAY),
    Scenario(name="one of two parcels is held up", also=AWAY, faults=[ADDRESS_UNKNOWN]),
    Scenario(name="by the courier", to=FAR),
    Scenario(name="completed, and something comes back", ready=completed, act=afterwards.send_back),
    Scenario(
        name="completed, and sent back",
        ready=completed,
        act=afterwards.send_back_and_be_paid,
    ),
    Scenario(name="completed, and exchanged", ready=completed, act=afterwards.exchange),
    Scenario(
        name="goes to another address",
        card=Card.ASKS,
        ready=afterwards.asked_by_the_bank,
        act=afterwards.move,
    ),
    Scenario(
        name="a unit of it removed, the transfer is awaited",
        card=Card.TRANSFER,
        also=AWAY,
        ready=afterwards.set_aside,
        act=afterwards.remove_one,
    ),
    Scenario(name="gift cards, sent by e-mail", only=GIFT_CARD),
    Scenario(name="paid in part by a gift card", gift_card=5),
    Scenario(name="free, as a gift card pays all", gift_card=900),
    Scenario(name="waits for its release", only=PREORDER, times=2),
    Scenario(name="made to order", only=MADE, times=2),
    Scenario(name="paid at the third attempt", card=Card.SLOW),
    Scenario(name="paid, though the answer was lost", card=Card.LOST),
    Scenario(name="the customer is to confirm at the bank", card=Card.ASKS),
    Scenario(name="confirmed in the bank's app", card=Card.APP),
    Scenario(name="waits for its bank transfer", card=Card.TRANSFER),
    Scenario(name="risky, a person decides", card=Card.RISKY, times=2),
    Scenario(name="paid anew, as the authorization had expired", card=Card.EXPIRES),
    Scenario(name="declined, the customer is asked", card=Card.DECLINED),
    Scenario(name="without funds, the customer is asked", card=Card.NO_FUNDS),
    Scenario(
        name="declined, paid with another card",
        card=Card.DECLINED,
        ready=failed(CARD),
        act=use_other_card,
    ),
    Scenario(name="declined, given up", card=Card.DECLINED, ready=failed(CARD), act=cancel),
    Scenario(name="sold out, the customer is asked", also=GONE),
    Scenario(name="sold out, left out", also=GONE, ready=failed(STOCK), act=leave_out),
    Scenario(name="sold out, waited for", also=GONE, ready=failed(STOCK), act=wait),
    Scenario(
        name="paid and cancelled",
        faults=[UNCONFIRMED],
        ready=paid,
        act=cancel,
    ),
    Scenario(
        name="cancelled, but the refund was refused",
        faults=[UNCONFIRMED, {"partner": "payment", "action": "refund", "fault": "reject"}],
        ready=paid,
        act=cancel,
    ),
    Scenario(
        name="cancelled, and the refund took a while",
        faults=[
            UNCONFIRMED,
            {
                "partner": "payment",
                "action": "refund",
                "fault": "status",
                "status": 503,
                "times": 6,
            },
        ],
        ready=paid,
        act=cancel,
    ),
    Scenario(
        name="refused by the shipper",
        faults=[ADDRESS_UNKNOWN],
        times=2,
    ),
    Scenario(
        name="tried again and again",
        faults=[{"partner": "shipping", "action": "book", "fault": "status", "times": 7}],
    ),
)


def play(say: Callable[[str], None] = lambda _: None, *, timeout: float = TIMEOUT) -> int:
    """Place each scenario's orders and act as their customers; return the number of orders.

    Its own faults, and only those, are removed when it returns or raises.
    """
    shoppers = Shoppers()
    products = Product.objects.in_bulk()
    waiting: dict[UUID, Scenario] = {}
    faulty: set[UUID] = set()
    count = 0
    with ExitStack() as cleanup:
        for scenario in SCENARIOS:
            for _ in range(scenario.times):
                order = uuid4()
                for fault in scenario.faults:
                    cleanup.callback(_remove_fault, _add_fault({**fault, "order": str(order)}))
                    faulty.add(order)
                shoppers.buy(
                    card=scenario.card,
                    order=order,
                    also=products.get(scenario.also),
                    only=products.get(scenario.only),
                    to=scenario.to,
                    gift_card=_gift_card(scenario.gift_card) if scenario.gift_card else None,
                )
                say(f"{order}  {scenario.name}")
                count += 1
                if scenario.act:
                    waiting[order] = scenario
        for order in subscribers.subscribe():
            say(f"{order}  the first of a subscription")
            count += 1
        _act(waiting, timeout)
        _await_settled(faulty, timeout)
    return count


def has_settled(order: UUID) -> bool:
    """Return whether an order has settled: it ended, or a person must act."""
    placed_order, progress = queries.placed_order(order), queries.progress(order)
    if progress is None or (placed_order and placed_order.asked and placed_order.asked.pending):
        return False
    states = {step.state for step in progress.steps}
    return progress.state in (api.TaskState.PROCESSED, api.TaskState.UNDONE) or (
        api.StepState.ERROR in states
        and not states & {api.StepState.PENDING, api.StepState.PROCESSING}
    )


def _act(waiting: dict[UUID, Scenario], timeout: float) -> None:
    """Act on each order once it is ready."""
    until = time.monotonic() + timeout
    while waiting and time.monotonic() < until:
        for order, scenario in list(waiting.items()):
            progress = queries.progress(order)
            if progress and scenario.ready and scenario.act and scenario.ready(progress):
                scenario.act(order, progress)
                del waiting[order]
        time.sleep(PAUSE)


def _await_settled(orders: set[UUID], timeout: float) -> None:
    """Wait until orders have settled."""
    until = time.monotonic() + timeout
    while orders and time.monotonic() < until:
        orders = {order for order in orders if not has_settled(order)}
        time.sleep(PAUSE)


def _gift_card(amount: int) -> GiftCard:
    """Issue a gift card as staff."""
    card = gift_issue.ByHand(
        id=uuid4(),
        amount=amount * whole(),
        name="Ada Lovelace",
        email="ada.lovelace@example.org",
        language="en",
        reason="A parcel came late.",
    )
    return gift_issue.by_hand(card, by=None)


def _step(progress: api.Progress, name: str) -> api.StepProgress:
    return next(
        step for step in progress.steps if step.name == name and step.direction is api.Direction.DO
    )


def _add_fault(fault: Fault) -> int:
    """Create a fault; return its id."""
    answer = request_json(f"{settings.SANDBOX_URL}/faults", fault, timeout=SANDBOX_TIMEOUT)
    return int(answer["id"])


def _remove_fault(fault: int) -> None:
    """Remove a fault, as its button does; it may be gone already."""
    form = urlencode({"id": fault}).encode()
    button = f"{settings.SANDBOX_URL}/faults/remove"
    urlopen(button, form, timeout=SANDBOX_TIMEOUT).close()  # noqa: S310 - the sandbox
