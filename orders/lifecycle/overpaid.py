"""What was authorized, or transferred, beyond what an order costs since something was removed from it.

Of a card only the present total is captured. A transfer is of the amount that its customer was asked for, so
the rest goes back by a refund once the order is completed; an order that is undone returns all of it.
"""

from collections.abc import Sequence
from uuid import UUID, uuid5

from django.utils import translation
from django.utils.translation import gettext as _

from orchestration import api
from orders.cards import Card
from orders.models import Order

from . import refunds
from .message import WORKFLOW
from .paying import CARD, asked
from .stages import do_steps


def in_words(progress: api.Progress | None) -> str:
    """Return what becomes of the amount that was asked for, in the active language."""
    step = do_steps(progress).get(CARD) if progress else None
    if step is None or step.request.get("payment_method") != Card.TRANSFER:
        return _("Your bank may still name %(asked)s. We take only what your order costs now.")
    if _is_taken(step):
        return _(
            "You have paid %(asked)s. What is too much goes back to you as your order is on its way."
        )
    return _(
        "Please transfer the %(asked)s that we asked for. What is too much goes back to you as your order "
        "is on its way."
    )


def _is_taken(step: api.StepProgress | None) -> bool:
    """Return whether a transfer has arrived."""
    return bool(step and (step.result or {}).get("taken"))


def receive(messages: Sequence[api.Status]) -> None:
    """Refund what transfers of completed orders were too much, once; others have none (no query)."""
    taken = {
        message.reference: asked(message.progress)
        for message in messages
        if message.workflow == WORKFLOW
        and message.kind == api.StatusKind.COMPLETED
        and message.progress
        and _is_taken(do_steps(message.progress).get(CARD))
    }
    if not taken:
        return
    orders = Order.objects.filter(id__in=map(UUID, taken)).order_by("id")
    for order in orders.select_for_update(no_key=True, of=("self",)):
        if (amount := taken[str(order.id)] - order.to_pay) > 0:
            with translation.override(order.language):
                reason = _("You removed something from it after you were asked to pay.")
            refunds.return_overpaid(order, amount, reason, id_=uuid5(order.id, "overpaid"))
