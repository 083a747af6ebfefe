"""How the payment of an order stands, in the customer's words. Pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from orchestration.api import Progress, StepProgress, StepState
from orders.agents.error_codes import DECLINED, EXPIRED

from .stages import do_steps

CARD, CAPTURE = "authorize_payment", "capture_payment"
REVIEW = "review_order"
LATE = "late"  # the engine's code of a step whose result did not come in time
# only the reasons that help the customer; others stay with the bank
REASONS = {
    "insufficient_funds": _("Your card was declined for insufficient funds."),
    "expired_card": _("Your card was declined: it has expired."),
    "payment_intent_authentication_failure": _("The payment was not confirmed at your bank."),
    "authentication_required": _("Your bank wants you to confirm the payment."),
    EXPIRED: _("The hold on your card has expired."),
}
PLAINLY_DECLINED = _("Your card was declined.")
NOT_PAID = _("The payment did not come in time.")
NOT_ACCEPTED = _("We could not accept the payment.")
AWAITS_BANK = _("Your bank asks you to confirm the payment. Nothing is charged until you do.")
AWAITS_TRANSFER = _("We wait for your bank transfer, and keep your items for seven days.")
REVIEWING = _("We check the payment before we send your order. That takes some hours at most.")


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """Where a bank transfer goes; `amount` is in minor units."""

    holder: str
    iban: str
    bic: str
    reference: str
    amount: int


@dataclass(frozen=True, kw_only=True)
class PaymentDue:
    """What the customer has to do: on the bank's page, by an app or by a transfer."""

    page: str
    transfer: Transfer | None


def payment_due(progress: Progress | None) -> PaymentDue | None:
    """Return what an order's payment waits for its customer to do, if it does."""
    step = do_steps(progress).get(CARD) if progress else None
    if step is None or step.state is not StepState.AWAITING or step.result is None:
        return None
    accepted: Mapping[str, Any] = step.result
    page = str(accepted.get("page", ""))
    transfer = accepted.get("transfer")
    return PaymentDue(
        # an address of the provider's, which must not run as a script
        page=page if urlsplit(page).scheme in {"https", "http"} else "",
        transfer=Transfer(**transfer) if transfer else None,
    )


def asked(progress: Progress | None) -> int:
    """Return the amount that the payment was asked for, in minor units; 0 before that."""
    step = do_steps(progress).get(CARD) if progress else None
    begun = step is not None and step.state is not StepState.SKIPPED
    return int(step.request.get("amount", 0)) if step and begun else 0


def waiting(progress: Progress) -> tuple[str | Promise, str] | None:
    """Return sentence and mood while the payment waits for its customer, or for a person."""
    if due := payment_due(progress):
        return (AWAITS_TRANSFER, "busy") if due.transfer else (AWAITS_BANK, "slow")
    review = do_steps(progress).get(REVIEW)
    if review and review.state is StepState.AWAITING:
        return REVIEWING, "busy"
    return None


def declined_step(progress: Progress) -> StepProgress | None:
    """Return the failed step for which the customer may choose another card."""
    steps = do_steps(progress)
    for step in (steps.get(CARD), steps.get(CAPTURE)):
        if step and step.state is StepState.ERROR and not step.in_doubt:
            return step if step.error_code in DECLINED else None
    return None


def reason(step: StepProgress) -> str:
    """Return why a card was declined."""
    return str(REASONS.get(step.error_code, PLAINLY_DECLINED))


def why_cancelled(progress: Progress) -> str:
    """Return why an order was cancelled, if that was its payment; else ""."""
    steps = do_steps(progress)
    card, review = steps.get(CARD), steps.get(REVIEW)
    if review and review.error_code:
        return str(NOT_ACCEPTED)
    if card and card.error_code == LATE:
        return str(NOT_PAID)
    if card and card.state is StepState.CANCELLED and card.error_code in DECLINED:
        return reason(card)
    return ""


def payment_id(progress: Progress) -> str:
    """Return the provider's id of the payment that was taken: by the capture, or by a transfer.

    "" for an order that a gift card paid, or that was free.
    """
    steps = do_steps(progress)
    taken = steps.get(CAPTURE)
    step = taken if taken and taken.state is StepState.PROCESSED else steps[CARD]
    return str((step.result or {})["id"]) if step.state is not StepState.SKIPPED else ""


def is_paid(progress: Progress) -> bool:
    """Return whether money was taken: by the capture, or by a transfer."""
    steps = do_steps(progress)
    card, taken = steps.get(CARD), steps.get(CAPTURE)
    if taken is not None and taken.state is StepState.PROCESSED:
        return True
    result = card.result if card and card.state is StepState.PROCESSED else None
    return bool(result and result.get("taken"))
