"""Orders in every state, for a demo that begins with something to look at.

Nothing is painted: each scene is an order that is really placed, with faults scripted at the
sandbox for this order alone, and people who then do what people do. Once the orders have come to
rest the faults are taken away again: what an operator tries later meets sound partners.
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

from . import mending, watching
from .cards import Card
from .catalogue import GONE
from .demo import Shoppers
from .exchange import exchange
from .models import Product
from .tracking import CARD, STOCK

PATIENCE = 60.0  # seconds for an order to come to where its customer acts, and then to its end
PAUSE = 0.3  # seconds between two looks
SANDBOX_PATIENCE = 5.0  # seconds

Fault = dict[str, Any]
Ready = Callable[[api.Progress], bool]
Act = Callable[[UUID, api.Progress], object]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One story: how it is paid, what goes wrong, and what is done once `ready`."""

    name: str
    card: Card = Card.VISA
    faults: Sequence[Fault] = ()
    sold_out: bool = False
    ready: Ready | None = None
    act: Act | None = None
    times: int = 1


def failed(step: str) -> Ready:
    """Return whether a step is in error."""
    return lambda progress: _step(progress, step).state is api.StepState.ERROR


def paid(progress: api.Progress) -> bool:
    """Return whether it is paid, and may still be cancelled."""
    return progress.undoable and (
        _step(progress, "capture_payment").state is api.StepState.PROCESSED
    )


def cancel(order: UUID, _progress: api.Progress) -> object:
    """Have the customer cancel."""
    return mending.cancel(order)


def pay_otherwise(order: UUID, progress: api.Progress) -> object:
    """Have the customer give a better card."""
    return mending.other_card(order, _step(progress, CARD).attempt, Card.VISA)


def leave_out(order: UUID, progress: api.Progress) -> object:
    """Have the customer do without what is sold out."""
    return mending.leave_out(order, _step(progress, STOCK).attempt, GONE)


def wait(order: UUID, progress: api.Progress) -> object:
    """Have the customer wait for what is sold out."""
    return mending.wait_for_stock(order, _step(progress, STOCK).attempt)


# The mailer is busy for this order: it is paid, and its confirmation is not out yet. All faults are
# few: a breaker that opens over them would have visitors' first orders wait.
UNCONFIRMED = {"partner": "mail", "fault": "status", "status": 429, "times": 6}
SCENES = (
    Scene(name="confirmed", times=14),
    Scene(name="paid at the third try", card=Card.SLOW),
    Scene(name="paid, though the answer was lost", card=Card.LOST),
    Scene(name="declined, the customer is asked", card=Card.DECLINED),
    Scene(name="without funds, the customer is asked", card=Card.NO_FUNDS),
    Scene(name="declined, mended", card=Card.DECLINED, ready=failed(CARD), act=pay_otherwise),
    Scene(name="declined, given up", card=Card.DECLINED, ready=failed(CARD), act=cancel),
    Scene(name="sold out, the customer is asked", sold_out=True),
    Scene(name="sold out, left out", sold_out=True, ready=failed(STOCK), act=leave_out),
    Scene(name="sold out, waited for", sold_out=True, ready=failed(STOCK), act=wait),
    Scene(
        name="paid and cancelled",
        faults=[UNCONFIRMED],
        ready=paid,
        act=cancel,
    ),
    Scene(
        name="cancelled, but the refund was refused",
        faults=[UNCONFIRMED, {"partner": "payment", "action": "refund", "fault": "reject"}],
        ready=paid,
        act=cancel,
    ),
    Scene(
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
    Scene(
        name="refused by the shipper",
        faults=[
            {
                "partner": "shipping",
                "action": "book",
                "fault": "reject",
                "times": 1,
                "code": "address_unknown",
                "message": "There is no such house.",
            }
        ],
        times=2,
    ),
    Scene(
        name="tried again and again",
        faults=[{"partner": "shipping", "action": "book", "fault": "status", "times": 7}],
    ),
)


def play(say: Callable[[str], None] = lambda _: None, *, patience: float = PATIENCE) -> int:
    """Place every scene's orders, and have their customers act; return how many orders there are.

    Its faults, and only those, are gone when it returns, whatever comes in between.
    """
    shoppers = Shoppers()
    board = Product.objects.filter(sku=GONE).first()
    open_scenes: dict[UUID, Scene] = {}
    troubled: set[UUID] = set()
    count = 0
    with ExitStack() as healing:
        for scene in SCENES:
            for _ in range(scene.times):
                order = uuid4()
                for fault in scene.faults:
                    healing.callback(_heal, _script({**fault, "order": str(order)}))
                    troubled.add(order)
                shoppers.buy(card=scene.card, order=order, also=board if scene.sold_out else None)
                say(f"{order}  {scene.name}")
                count += 1
                if scene.act:
                    open_scenes[order] = scene
        _act(open_scenes, patience)
        _await_rest(troubled, patience)
    return count


def at_rest(order: UUID) -> bool:
    """Return whether nothing more happens to an order by itself: it ended, or a person must act."""
    watched, progress = watching.watched(order), watching.progress(order)
    if progress is None or (watched and watched.asked and watched.asked.pending):
        return False
    found = {step.state for step in progress.steps}
    return progress.state in (api.TaskState.PROCESSED, api.TaskState.UNDONE) or (
        api.StepState.ERROR in found
        and not found & {api.StepState.PENDING, api.StepState.PROCESSING}
    )


def _act(scenes: dict[UUID, Scene], patience: float) -> None:
    """Wait for each order to come to where its customer acts, and have them act."""
    until = time.monotonic() + patience
    while scenes and time.monotonic() < until:
        for order, scene in list(scenes.items()):
            progress = watching.progress(order)
            if progress and scene.ready and scene.act and scene.ready(progress):
                scene.act(order, progress)
                del scenes[order]
        time.sleep(PAUSE)


def _await_rest(orders: set[UUID], patience: float) -> None:
    """Wait until the faults have done to these orders what they were for."""
    until = time.monotonic() + patience
    while orders and time.monotonic() < until:
        orders = {one for one in orders if not at_rest(one)}
        time.sleep(PAUSE)


def _step(progress: api.Progress, name: str) -> api.StepProgress:
    return next(
        step for step in progress.steps if step.name == name and step.direction is api.Direction.DO
    )


def _script(fault: Fault) -> int:
    """Put a fault in force; return its id."""
    answer = exchange(f"{settings.SANDBOX_URL}/faults", fault, patience=SANDBOX_PATIENCE)
    return int(answer["id"])


def _heal(fault: int) -> None:
    """Take one fault away, as its button does; somebody may have been first."""
    form = urlencode({"id": fault}).encode()
    button = f"{settings.SANDBOX_URL}/faults/remove"
    urlopen(button, form, timeout=SANDBOX_PATIENCE).close()  # noqa: S310 - our own address
