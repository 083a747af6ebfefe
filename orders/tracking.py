"""Where an order stands, in the customer's words. Plain functions of plain data."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

from orchestration.api import Direction, Progress, StepProgress, StepState, TaskState

from .declines import DECLINED

STEPS = {  # what each step of the workflow means to a customer: done, now, to come
    "reserve_stock": ("Items set aside", "Setting your items aside", "Set your items aside"),
    "authorize_payment": ("Card checked", "Checking your card", "Check your card"),
    "create_shipment": ("Shipment booked", "Booking your shipment", "Book your shipment"),
    "capture_payment": ("Payment taken", "Taking the payment", "Take the payment"),
    "send_confirmation": (
        "Confirmation sent",
        "Sending your confirmation",
        "Send your confirmation",
    ),
}
UNDO_STEPS = {  # what undoing it means: done, now
    "reserve_stock": ("Items put back", "Putting your items back"),
    "authorize_payment": ("Card released", "Releasing the hold on your card"),
    "create_shipment": ("Shipment cancelled", "Cancelling your shipment"),
    "capture_payment": ("Payment returned", "Returning your payment"),
}
DONE = {StepState.PROCESSED, StepState.SKIPPED}
# The bank's reason is between it and its customer: two of them help to do better
REASONS = {"insufficient_funds": " for insufficient funds", "expired_card": ": it has expired"}

SPOKEN = {
    "done": ": done",
    "now": ": at this moment",
    "next": ": to come",
    "failed": ": did not work",
    "off": ": not any more",
}

LATE = 30.0  # seconds after which "received" alone would worry the customer
PACE = ((4, 0.5), (60, 2), (300, 5), (1800, 15))  # (younger than, look every), in seconds
SLOWEST = 30.0

RECEIVED = "We received your order."
DELAYED = "We received your order. It is safe, and we start on it as soon as we can."
WORKING = "We received your order and are preparing it."
TROUBLE = "This takes longer than usual. Your order is safe; we keep trying."
STUCK = "This takes longer than usual. Your order is safe; our staff is looking into it."
CONFIRMED = "Your order is confirmed: paid for, and on its way to you."
SOLD_OUT = "Something in your order is out of stock. Nothing was charged; our staff will tell you."
CANCELLING = "Your order is being cancelled."
CANCELLING_STUCK = (
    "Your order is being cancelled. This takes longer than usual; our staff is looking into it."
)
CANCELLED = "Your order was cancelled. Nothing was charged."
REFUNDED = "Your order was cancelled. You get back what you paid."


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step as the customer sees it. `state`: done, now, next, failed or off."""

    text: str
    state: str
    at: datetime | None = None

    @property
    def spoken(self) -> str:
        """What its colour and shape say, for those who do not see them."""
        return SPOKEN[self.state]


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """Where an order stands. `mood`: good, busy, slow or bad; `interval` in seconds."""

    sentence: str
    mood: str
    stages: tuple[Stage, ...]
    final: bool
    interval: float
    parcel: str

    def redacted(self) -> "Tracking":
        """Return it without what is nobody's business but the customer's."""
        stages = tuple(
            replace(stage, text="Being looked into") if stage.state == "failed" else stage
            for stage in self.stages
        )
        if self.mood != "bad":
            return replace(self, stages=stages, parcel="")
        return replace(self, sentence=STUCK, mood="slow", stages=stages, parcel="")

    @property
    def pause(self) -> int:
        """The interval in milliseconds."""
        return round(self.interval * 1000)

    @property
    def version(self) -> str:
        """A short text that changes when anything the page shows does."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


def track(progress: Progress | None, *, placed_at: datetime, now: datetime) -> Tracking:
    """Return what to tell the customer; `progress` is None while the order is not taken yet."""
    age = (now - placed_at).total_seconds()
    sentence, mood = _summary(progress, age)
    return Tracking(
        sentence=sentence,
        mood=mood,
        stages=(Stage(text="Order received", state="done", at=placed_at), *_stages(progress)),
        final=progress is not None and progress.state in {TaskState.PROCESSED, TaskState.UNDONE},
        interval=next((every for younger, every in PACE if age < younger), SLOWEST),
        parcel=_parcel(progress),
    )


def _summary(progress: Progress | None, age: float) -> tuple[str, str]:
    if progress is None:
        return (DELAYED, "slow") if age > LATE else (RECEIVED, "busy")
    match progress.state:
        case TaskState.PROCESSED:
            return CONFIRMED, "good"
        case TaskState.UNDONE:
            return _cancelled(progress), "bad"
        case TaskState.UNDOING:
            return CANCELLING, "slow"
        case TaskState.ERROR:
            return _failure(progress)
    troubled = progress.overdue or any(
        step.failure_count and step.state is not StepState.PROCESSED for step in progress.steps
    )
    return (TROUBLE, "slow") if troubled else (WORKING, "busy")


def _failure(progress: Progress) -> tuple[str, str]:
    """Say what went wrong where the customer can understand it; otherwise, that we see to it."""
    if _undos(progress):
        return CANCELLING_STUCK, "slow"
    failed = {step.name: step for step in progress.steps if step.state is StepState.ERROR}
    card = failed.get("authorize_payment")
    if card and card.error_code in DECLINED:
        return f"{_declined(card)} Nothing was charged.", "bad"
    stock = failed.get("reserve_stock")
    if stock and stock.error_code == "out_of_stock":
        return SOLD_OUT, "bad"
    return STUCK, "slow"


def _cancelled(progress: Progress) -> str:
    """Say that nothing is left of the order; and why, where it was the card."""
    does = _does(progress)
    paid = does.get("capture_payment")
    if paid and paid.state in DONE:
        return REFUNDED
    card = does.get("authorize_payment")
    if card and card.state is StepState.CANCELLED and card.error_code in DECLINED:
        return f"{_declined(card)} {CANCELLED}"
    return CANCELLED


def _declined(card: StepProgress) -> str:
    return f"Your card was declined{REASONS.get(card.error_code, '')}."


def _does(progress: Progress) -> dict[str, StepProgress]:
    return {step.name: step for step in progress.steps if step.direction is Direction.DO}


def _undos(progress: Progress) -> dict[str, StepProgress]:
    return {step.name: step for step in progress.steps if step.direction is Direction.UNDO}


def _stages(progress: Progress | None) -> list[Stage]:
    if progress is None:
        return [Stage(text=to_come, state="next") for _, _, to_come in STEPS.values()]
    undos = _undos(progress)
    return [_undo_stage(undos.get(name)) or _stage(step) for name, step in _does(progress).items()]


def _undo_stage(step: StepProgress | None) -> Stage | None:
    """Return what an undo step makes of its step's stage; None while it makes no difference."""
    if step is None:
        return None
    plain = f"{step.name.replace('_', ' ').capitalize()}, undone"
    done, now = UNDO_STEPS.get(step.name, (plain, plain))
    match step.state:
        case StepState.PROCESSED | StepState.SKIPPED:
            return Stage(text=done, state="done", at=step.ended_at)
        case StepState.PENDING | StepState.PROCESSING:
            return Stage(text=now, state="now")
        case StepState.ERROR:
            return Stage(text=now, state="failed", at=step.ended_at)
    return None


def _stage(step: StepProgress) -> Stage:
    plain = step.name.replace("_", " ").capitalize()
    done, now, to_come = STEPS.get(step.name, (plain, plain, plain))
    match step.state:
        case StepState.PROCESSED | StepState.SKIPPED:
            return Stage(text=done, state="done", at=step.ended_at)
        case StepState.PENDING | StepState.PROCESSING:
            again = " again" if step.failure_count else ""
            return Stage(text=f"{now}{again}", state="now")
        case StepState.ERROR:
            return Stage(text=now, state="failed", at=step.ended_at)
        case StepState.CANCELLED:
            return Stage(text=to_come, state="off")
    return Stage(text=to_come, state="next")


def _parcel(progress: Progress | None) -> str:
    """Return the parcel's tracking number, as long as there is a parcel."""
    booked = _does(progress).get("create_shipment") if progress else None
    if progress is None or booked is None or not booked.result:
        return ""
    cancelled = _undos(progress).get("create_shipment")
    if cancelled and cancelled.state in DONE:
        return ""
    return str(booked.result.get("tracking", ""))
