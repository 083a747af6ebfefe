"""Order tracking in the customer's words. Pure functions."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from orchestration.api import Progress, Refusal, StepProgress, StepState, TaskState
from orders.agents.error_codes import DECLINED, OUT_OF_STOCK
from orders.handling import NONE, Handling
from orders.models.order import Aside

from . import paying, requests, special
from .paying import PaymentDue
from .requests import Change, ChangeRequest
from .stages import Stage, do_steps, stages, undo_steps

STOCK = "reserve_stock"  # with the payment's, the steps that a customer can fix
FIXABLE = DECLINED | {OUT_OF_STOCK}
DELAYED_AFTER = 30.0  # seconds in "received" before the sentence reassures the customer
# (age below, poll every), in seconds: most orders end within the first minute
POLL_EVERY = ((6, 1), (60, 2), (300, 5), (1800, 15))
POLL_SLOWEST = 30.0
POLL_PENDING = 2.0  # while a request is pending
POLL_FIXABLE = 15.0  # while the customer fills in a form

RECEIVED = _("We received your order.")
DELAYED = _("We received your order. It is safe, and we start on it as soon as we can.")
SET_ASIDE = _(
    "We could not take your order. Nothing was charged; our staff is looking into it and will "
    "write to you."
)
CLOSED = _("We could not take your order. Nothing was charged.")
WORKING = _("We received your order and are preparing it.")
TROUBLE = _("This is taking longer than usual. Your order is safe; we keep trying.")
STUCK = _("This is taking longer than usual. Your order is safe; our staff is looking into it.")
CONFIRMED = _("Your order is confirmed: paid for, and on its way to you.")
NOTHING_CHARGED = _("Nothing was charged.")
SOLD_OUT = _("Something in your order is out of stock. Nothing was charged.")
WAITING = _(
    "Something in your order is out of stock. We keep the order and look for it again and again; "
    "until then nothing is charged."
)
CANCELLING = _("Your order is being cancelled.")
REFUNDING = _("Your order is being cancelled, and your payment is on its way back to you.")
CANCELLING_STUCK = _(
    "Your order is being cancelled. This is taking longer than usual; our staff is looking into it."
)
CANCELLED = _("Your order was cancelled. Nothing was charged.")
REFUNDED = _(
    "Your order was cancelled. You get back what you paid; banks take up to ten days to show it."
)
PASSED_ON = _("Thank you, we have passed that on. Your order goes on in a moment.")
CANCEL_ASKED = _(
    "We have passed your cancellation on. In a moment you will see here whether it came in time."
)
TOO_LATE = _(
    "Your order is on its way, so it cannot be cancelled any more. You may send back what arrives "
    "within 14 days."
)
MOVED_ON = _("That came too late: your order had moved on by then. This is how it stands now.")
ASKED = {**requests.ASKED, Change.CANCEL: CANCEL_ASKED}  # others: PASSED_ON
ENDED = {TaskState.PROCESSED, TaskState.UNDONE}
TURNED_BACK = {TaskState.UNDOING, TaskState.UNDONE}


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A failed `step` that the customer can fix; `sku` is out of stock."""

    step: str
    attempt: int
    until: datetime | None
    sku: str = ""


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """The state of an order. `mood`: good, busy, slow or bad; `interval`: seconds between polls.

    `thanks`: it proceeds normally. `until`: when it changes by time alone. `notice`: why the last
    request was refused. `payment`: what the customer has to do about it.
    """

    sentence: str
    mood: str
    thanks: bool
    stages: tuple[Stage, ...]
    final: bool
    interval: float
    parcel: str
    until: datetime | None = None
    fixes: tuple[Fix, ...] = ()
    cancellable: bool = False
    notice: str = ""
    payment: PaymentDue | None = None

    def redacted(self) -> "Tracking":
        """Return a copy for visitors who are not the customer."""
        copy = replace(self, parcel="", fixes=(), cancellable=False, notice="", payment=None)
        copy = replace(copy, stages=tuple(stage.redacted() for stage in self.stages))
        if self.mood != "bad":
            return copy
        return replace(copy, sentence=str(STUCK), mood="slow")

    @property
    def pause(self) -> int:
        """The interval in milliseconds."""
        return round(self.interval * 1000)

    @property
    def spoken(self) -> str:
        """The announcement of a change: the sentence and the current stages."""
        now = [f"{stage.text}." for stage in self.stages if stage.state == "now"]
        return " ".join([*filter(None, [self.notice]), self.sentence, *now])

    @property
    def digest(self) -> str:
        """A digest of the announcement."""
        return hashlib.sha256(self.spoken.encode()).hexdigest()[:16]


def track(
    progress: Progress | None,
    *,
    placed_at: datetime,
    now: datetime,
    aside: str = "",
    waits: bool = False,
    asked: ChangeRequest | None = None,
    handling: Handling = NONE,
) -> Tracking:
    """Return the tracking of an order; `progress` is None before its first status message.

    `aside`: why it is not processed. `waits`: the customer waits for goods that are sold out.
    `asked`: the last request; while it is pending, the customer can make no other.
    """
    age = (now - placed_at).total_seconds()
    state = progress.state if progress else None
    pending = asked is not None and asked.pending and state is not TaskState.UNDONE
    sentence, mood = _summary(progress, age, aside=aside, waits=waits)
    if progress is not None and handling != NONE:
        sentence, mood = special.sentence(progress, (sentence, mood), handling)
    if asked is not None and pending:
        sentence, mood = ASKED.get(asked.act, PASSED_ON), "busy"
    remedies = () if pending else fixes(progress)
    payment = None if pending else paying.payment_due(progress)
    undoing = progress is not None and (state in TURNED_BACK or bool(undo_steps(progress)))
    cancelled = undoing or sentence is CANCEL_ASKED
    return Tracking(
        sentence=str(sentence),
        mood=mood,
        thanks=mood != "bad" and not cancelled,
        stages=stages(progress, placed_at),
        final=state in ENDED and not pending,
        interval=_interval(age, pending=pending or _confirms(payment), calm=bool(remedies)),
        parcel=parcel(progress),
        until=_until(progress, placed_at, age, calm=bool(remedies)),
        fixes=tuple(remedies),
        cancellable=progress is not None and not cancelled and not pending and progress.undoable,
        notice=str(_notice(asked, progress)),
        payment=payment,
    )


def _confirms(payment: PaymentDue | None) -> bool:
    """Return whether the customer is at their bank, and comes back in a moment."""
    return payment is not None and payment.transfer is None


def _interval(age: float, *, pending: bool, calm: bool) -> float:
    """Return the seconds until the next poll."""
    if pending:
        return POLL_PENDING
    if calm:
        return POLL_FIXABLE
    return next((every for younger, every in POLL_EVERY if age < younger), POLL_SLOWEST)


def _until(
    progress: Progress | None, placed_at: datetime, age: float, *, calm: bool
) -> datetime | None:
    """Return when the page changes by time alone, if it does."""
    turns: list[float] = [] if calm else [younger for younger, _ in POLL_EVERY if age < younger]
    if progress is None and age <= DELAYED_AFTER:
        turns.append(DELAYED_AFTER)
    return placed_at + timedelta(seconds=min(turns)) if turns else None


def _notice(asked: ChangeRequest | None, progress: Progress | None) -> str | Promise:
    """Return why the last request was refused, while that explains the current state."""
    if asked is None or asked.pending or progress is None:
        return ""
    if asked.act in requests.TOO_LATE:
        return "" if progress.state in TURNED_BACK else requests.TOO_LATE[asked.act]
    if asked.act is not Change.CANCEL:
        return "" if progress.state in ENDED else MOVED_ON
    if progress.state in TURNED_BACK:
        return ""
    return TOO_LATE if asked.refused == Refusal.IRREVERSIBLE.name else MOVED_ON


def fixes(progress: Progress | None) -> Sequence[Fix]:
    """Return the fixes open to the customer; none for a step in doubt, which may have been done."""
    if progress is None or progress.state != TaskState.ERROR or undo_steps(progress):
        return ()
    failed = {
        name: step
        for name, step in do_steps(progress).items()
        if step.state is StepState.ERROR and not step.in_doubt
    }
    remedies = []
    stock, card = failed.get(STOCK), paying.declined_step(progress)
    if stock and stock.error_code == OUT_OF_STOCK:
        named, lines = stock.error_message.partition(": ")[0], stock.request.get("lines", [])
        sku = named if named in {line["sku"] for line in lines} else ""
        remedies.append(Fix(step=STOCK, attempt=stock.attempt, until=stock.resolve_by, sku=sku))
    if card:
        remedies.append(Fix(step=card.name, attempt=card.attempt, until=card.resolve_by))
    return remedies


def _summary(
    progress: Progress | None, age: float, *, aside: str, waits: bool
) -> tuple[str | Promise, str]:
    if progress is None:
        if aside:
            return (CLOSED if aside == Aside.CLOSED else SET_ASIDE), "bad"
        return (DELAYED, "slow") if age > DELAYED_AFTER else (RECEIVED, "busy")
    if progress.state in {TaskState.PENDING, TaskState.PROCESSING}:
        return _under_way(progress, waits=waits)
    return _turned(progress)


def _turned(progress: Progress) -> tuple[str | Promise, str]:
    """Return sentence and mood of an order that ended, or stopped."""
    match progress.state:
        case TaskState.PROCESSED:
            return CONFIRMED, "good"
        case TaskState.UNDONE:
            return _cancelled(progress), "bad"
        case TaskState.UNDOING:
            return (REFUNDING if paying.is_paid(progress) else CANCELLING), "slow"
    return _failure(progress)


def _under_way(progress: Progress, *, waits: bool) -> tuple[str | Promise, str]:
    """Return sentence and mood of an order in process."""
    stock = do_steps(progress).get(STOCK)
    if waits and stock and stock.state is not StepState.PROCESSED:
        return WAITING, "slow"
    if waits_for := paying.waiting(progress):
        return waits_for
    troubled = progress.overdue or any(_troubled(step) for step in progress.steps)
    return (TROUBLE, "slow") if troubled else (WORKING, "busy")


def _troubled(step: StepProgress) -> bool:
    """Return whether a step waits after a failure, counted or (while its service is down) not.

    A step that the customer has just fixed keeps its last error until the next attempt.
    """
    if step.state in {StepState.PROCESSED, StepState.SKIPPED}:
        return False
    failed = step.state is StepState.PENDING and step.error_code not in {"", *FIXABLE}
    return step.failure_count > 0 or failed


def _failure(progress: Progress) -> tuple[str | Promise, str]:
    """Return sentence and mood of a failed order, with the reason if the customer can fix it."""
    if undo_steps(progress):
        return CANCELLING_STUCK, "slow"
    sold_out = any(fix.step == STOCK for fix in fixes(progress))
    if card := paying.declined_step(progress):
        declined = f"{paying.reason(card)} {NOTHING_CHARGED}"
        return (f"{SOLD_OUT} {declined}" if sold_out else declined), "bad"
    return (SOLD_OUT, "bad") if sold_out else (STUCK, "slow")


def _cancelled(progress: Progress) -> str | Promise:
    """Return the sentence of a cancelled order, with the reason if it was the payment."""
    if paying.is_paid(progress):
        return REFUNDED
    why = paying.why_cancelled(progress)
    return f"{why} {CANCELLED}" if why else CANCELLED


def parcel(progress: Progress | None) -> str:
    """Return the parcel's tracking number, or "" without a parcel."""
    booked = do_steps(progress).get("create_shipment") if progress else None
    if progress is None or booked is None or not booked.result:
        return ""
    cancelled = undo_steps(progress).get("create_shipment")
    if cancelled and cancelled.state is StepState.PROCESSED:
        return ""
    return str(booked.result.get("tracking", ""))
