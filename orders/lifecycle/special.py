"""What customers read of an order that is not a parcel of goods in stock, paid at once. Pure functions."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from orchestration.api import Progress, StepState, TaskState
from orders.handling import Handling
from orders.times import moment

from .stages import MAKE, do_steps

WAITS = _(
    "We keep your order until the release, on %(time)s. Nothing is charged before, and until then you can "
    "cancel it."
)
MAKING = _("Your order is being made for you.")
BY_EMAIL = _("Your order is confirmed and paid. The codes of your gift cards come by e-mail.")
GOODS_BACK = _("You get back what your return was worth; banks take up to ten days to show it.")
CARD_BACK = _("What your gift card paid is on it again.")


def sentence(
    progress: Progress, plain: tuple[str | Promise, str], handling: Handling
) -> tuple[str | Promise, str]:
    """Return sentence and mood of such an order, where they differ from those of others."""
    making = do_steps(progress).get(MAKE)
    if progress.state in {TaskState.PENDING, TaskState.PROCESSING}:
        if handling.released_at and not _has_begun(progress):
            return WAITS % {"time": moment(handling.released_at)}, "busy"
        return (MAKING, "busy") if making and making.state is StepState.AWAITING else plain
    if progress.state is TaskState.PROCESSED:
        return plain if handling.ships else (BY_EMAIL, "good")
    if progress.state is TaskState.UNDONE and handling.paid:
        return f"{plain[0]} {GOODS_BACK if handling.exchange else CARD_BACK}", plain[1]
    return plain


def _has_begun(progress: Progress) -> bool:
    """Return whether any step has: the engine's clock decides, not that of this process."""
    return any(step.state is not StepState.WAITING for step in progress.steps)
