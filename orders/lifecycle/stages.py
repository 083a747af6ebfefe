"""The steps of an order in the customer's words."""

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from orchestration.api import Direction, Progress, StepProgress, StepState, TaskState
from orders.cards import Card

STEPS = {  # by step: done, now, to come
    "reserve_stock": (
        gettext_lazy("Items set aside"),
        gettext_lazy("Setting your items aside"),
        gettext_lazy("Set your items aside"),
    ),
    "authorize_payment": (
        gettext_lazy("Card checked"),
        gettext_lazy("Checking your card"),
        gettext_lazy("Check your card"),
    ),
    "create_shipment": (
        gettext_lazy("Shipment booked"),
        gettext_lazy("Booking your shipment"),
        gettext_lazy("Book your shipment"),
    ),
    "capture_payment": (
        gettext_lazy("Payment taken"),
        gettext_lazy("Taking the payment"),
        gettext_lazy("Take the payment"),
    ),
    "send_confirmation": (
        gettext_lazy("Confirmation sent"),
        gettext_lazy("Sending your confirmation"),
        gettext_lazy("Send your confirmation"),
    ),
}
TRANSFER = (
    gettext_lazy("Your transfer has arrived"),
    gettext_lazy("Waiting for your transfer"),
    gettext_lazy("Wait for your transfer"),
)
MAKE, PARCELS = "make_goods", "send_parcels"
SOMETIMES = {  # most orders do not need these, so that they are shown once they have begun
    MAKE: (
        gettext_lazy("Made for you"),
        gettext_lazy("Being made for you"),
        gettext_lazy("Make it for you"),
    ),
    PARCELS: (
        gettext_lazy("Parcels booked"),
        gettext_lazy("Booking your parcels"),
        gettext_lazy("Book your parcels"),
    ),
}
NOT_BEGUN = {StepState.WAITING, StepState.CANCELLED}
NOT_SHOWN = {"review_order", "plan_parcels"}  # the sentence says what the customer needs of them
UNDO_STEPS = {  # by undo step: done, now
    "reserve_stock": (gettext_lazy("Items put back"), gettext_lazy("Putting your items back")),
    "authorize_payment": (
        gettext_lazy("Card released"),
        gettext_lazy("Releasing the hold on your card"),
    ),
    "create_shipment": (
        gettext_lazy("Shipment cancelled"),
        gettext_lazy("Cancelling your shipment"),
    ),
    PARCELS: (gettext_lazy("Parcels cancelled"), gettext_lazy("Cancelling your parcels")),
    "capture_payment": (gettext_lazy("Payment returned"), gettext_lazy("Returning your payment")),
}
SPOKEN = {
    "done": gettext_lazy(": done"),
    "now": gettext_lazy(": at this moment"),
    "next": gettext_lazy(": to come"),
    "failed": gettext_lazy(": did not work"),
    "off": gettext_lazy(": no longer needed"),
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A step in the customer's words. `state`: done, now, next, failed or off."""

    text: str
    state: str
    at: datetime | None = None

    @property
    def spoken(self) -> str:
        """The state in words, for screen readers."""
        return str(SPOKEN[self.state])

    def redacted(self) -> "Stage":
        """Return a copy without failures."""
        return replace(self, text=_("Being looked into")) if self.state == "failed" else self


def stages(progress: Progress | None, placed_at: datetime) -> tuple[Stage, ...]:
    """Return the stages of an order, from its receipt on."""
    return (Stage(text=_("Order received"), state="done", at=placed_at), *_stages(progress))


def do_steps(progress: Progress) -> dict[str, StepProgress]:
    """Return the forward steps by name."""
    return {step.name: step for step in progress.steps if step.direction is Direction.DO}


def undo_steps(progress: Progress) -> dict[str, StepProgress]:
    """Return the undo steps by the names of the steps they undo."""
    return {step.name: step for step in progress.steps if step.direction is Direction.UNDO}


def _stages(progress: Progress | None) -> list[Stage]:
    if progress is None:
        return [Stage(text=str(to_come), state="next") for _done, _now, to_come in STEPS.values()]
    taken = undo_steps(progress)
    ends = bool(taken) or progress.state in {TaskState.UNDOING, TaskState.UNDONE}
    return [
        _undo_stage(taken.get(name), step) or (_no_longer(step) if ends else _stage(step))
        for name, step in do_steps(progress).items()
        if step.state is not StepState.SKIPPED  # this order does not need it
        and name not in NOT_SHOWN
        and (name not in SOMETIMES or step.state not in NOT_BEGUN)
    ]


def _undo_stage(step: StepProgress | None, done_step: StepProgress) -> Stage | None:
    """Return the stage of an undo step; None before it begins."""
    if step is None:
        return None
    plain = f"{step.name.replace('_', ' ').capitalize()}, undone"
    name = "capture_payment" if _by_transfer(done_step) else step.name
    done, now = map(str, UNDO_STEPS.get(name, (plain, plain)))
    match step.state:
        case StepState.PROCESSED:
            return Stage(text=done, state="done", at=step.ended_at)
        case StepState.PENDING | StepState.PROCESSING:
            return Stage(text=now, state="now")
        case StepState.ERROR:
            return Stage(text=now, state="failed", at=step.ended_at)
    return None


def _no_longer(step: StepProgress) -> Stage:
    """Return the stage of a step of an order being cancelled: steps that are not done will not be."""
    stage = _stage(step)
    if stage.state not in {"now", "next"}:
        return stage
    return Stage(text=_words(step)[-1], state="off")


def _by_transfer(step: StepProgress) -> bool:
    return step.request.get("payment_method") == Card.TRANSFER


def _words(step: StepProgress) -> list[str]:
    """Return what a step is called when it is done, now, and to come."""
    plain = step.name.replace("_", " ").capitalize()
    if _by_transfer(step):
        return [str(text) for text in TRANSFER]
    return [str(text) for text in (STEPS | SOMETIMES).get(step.name, (plain, plain, plain))]


def _stage(step: StepProgress) -> Stage:
    done, now, to_come = _words(step)
    match step.state:
        case StepState.PROCESSED:
            return Stage(text=done, state="done", at=step.ended_at)
        case StepState.AWAITING:
            return Stage(text=now, state="now")
        case StepState.PENDING | StepState.PROCESSING:
            text = _("%(what)s again") % {"what": now} if step.failure_count else now
            return Stage(text=text, state="now")
        case StepState.ERROR:
            return Stage(text=now, state="failed", at=step.ended_at)
        case StepState.CANCELLED:
            return Stage(text=to_come, state="off")
    return Stage(text=to_come, state="next")
