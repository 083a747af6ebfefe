"""The payment partner, in the shape of Stripe's REST API: manual capture, cancel, refund.

Source of shapes and rules: Stripe's API reference (PaymentIntents, Refunds, Errors, Idempotent
requests, Testing). Amounts are in minor units of their currency.
"""

from dataclasses import dataclass, field
from typing import Any

from sandbox.cards import CARDS
from sandbox.partner import NOTHING, Call, Effect, Entry, Json, NewId, Partner
from sandbox.refusals import Refusal, declined, stripe_error

HELD, CAPTURED, CANCELED = "requires_capture", "succeeded", "canceled"


@dataclass(slots=True)
class Intent:
    """A payment intent: requires_capture → succeeded (→ refunds), or → canceled."""

    ref: str
    order: str | None
    key: str | None
    amount: int
    currency: str
    created: int
    method: str
    metadata: dict[str, str] = field(default_factory=dict)
    status: str = HELD
    captured: int = 0
    refunded: int = 0
    capture_key: str | None = None

    @property
    def refundable(self) -> int:
        """The captured amount that is not refunded yet, in minor units."""
        return self.captured - self.refunded


class Payment(Partner):
    """Authorizes, captures, cancels and refunds payments."""

    name = "payment"

    def __init__(self) -> None:
        self.intents: dict[str, Intent] = {}

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Authorize, capture, cancel or refund; raises Refusal in Stripe's shape."""
        if call.action == "authorize":
            return _authorize(call, new_id)
        intent = self.intent(call.ref or "")
        if call.action == "capture":
            return _capture(intent, call)
        if call.action == "cancel":
            if intent.status != HELD:
                raise _unexpected(intent, "canceled")
            return _cancel(intent)
        amount = _amount(call, "amount") if "amount" in call.params else intent.refundable
        return _refund(intent, amount, new_id)

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Cancel the authorization, or refund the rest of the captured amount."""
        intent = self.intents[done.ref or ""]
        if intent.refundable:
            return _refund(intent, intent.refundable, new_id)
        if done.action == "authorize" and intent.status == HELD:
            return _cancel(intent)
        return NOTHING

    def apply(self, entry: Entry) -> str | None:
        """Move the money; cancel undoes the authorization, a full refund the capture."""
        ref = entry.ref or ""
        if entry.effect == "authorize":
            self.intents[ref] = _intent(entry)
            return None
        if entry.effect == "refund":
            intent = self.intents[entry.parent or ""]
            intent.refunded += entry.amount or 0
            return None if intent.refundable else intent.capture_key
        intent = self.intents[ref]
        if entry.effect == "cancel":
            intent.status = CANCELED
            return intent.key
        intent.status, intent.captured = CAPTURED, entry.amount or 0
        intent.capture_key = entry.key
        return None

    def body(self, entry: Entry) -> Json:
        """Return the payment intent, or the refund, as it was right after the call."""
        if entry.action == "refund":
            return _show_refund(entry)
        intent = self.intents[entry.ref or ""]
        if entry.action == "authorize":
            return _show(intent, HELD, 0)
        if entry.action == "capture":
            return _show(intent, CAPTURED, entry.amount or 0)
        return _show(intent, CANCELED, 0)

    def view(self, ref: str) -> Json | None:
        """Return the current payment intent."""
        intent = self.intents.get(ref)
        return _show(intent, intent.status, intent.captured) if intent else None

    def order_of(self, ref: str) -> str | None:
        """Return the order in the intent's metadata."""
        intent = self.intents.get(ref)
        return intent.order if intent else None

    def intent(self, ref: str) -> Intent:
        """Return an intent by id, or raise Stripe's 404 `resource_missing`."""
        intent = self.intents.get(ref)
        if intent is None:
            raise missing(ref)
        return intent


def missing(ref: str) -> Refusal:
    """Return Stripe's 404 for an unknown payment intent."""
    return Refusal(404, "resource_missing", f"No such payment_intent: '{ref}'", param="intent")


def _authorize(call: Call, new_id: NewId) -> Effect:
    amount = _amount(call, "amount")
    currency = call.params.get("currency", "")
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha()):
        raise _invalid("currency", f"Invalid currency: '{currency}'. It must be like 'eur'.")
    for name, value in (("capture_method", "manual"), ("confirm", "true")):
        if call.params.get(name) != value:
            raise _invalid(name, f"This sandbox needs {name}={value}, as the payment agent sends.")
    method = call.params.get("payment_method", "")
    card = CARDS.get(method)
    if card is None:
        raise _invalid(
            "payment_method",
            f"No such PaymentMethod: '{method}'. The sandbox knows {', '.join(CARDS)}.",
            "resource_missing",
        )
    if card.decline is not None:
        raise declined(*card.decline)
    metadata = {
        name[9:-1]: value
        for name, value in call.params.items()
        if name.startswith("metadata[") and name.endswith("]")
    }
    detail = [method, metadata]
    return Effect(ref=new_id("pi"), amount=amount, currency=currency.lower(), detail=detail)


def _capture(intent: Intent, call: Call) -> Effect:
    if intent.status != HELD:
        raise _unexpected(intent, "captured")
    name = "amount_to_capture"
    amount = _amount(call, name) if name in call.params else intent.amount
    if amount > intent.amount:
        raise _invalid(
            name,
            f"The amount to capture, {amount}, is more than the {intent.amount} authorized.",
            "amount_too_large",
        )
    return Effect(ref=intent.ref, amount=amount, currency=intent.currency)


def _cancel(intent: Intent) -> Effect:
    return Effect(ref=intent.ref, amount=intent.amount, currency=intent.currency, kind="cancel")


def _refund(intent: Intent, amount: int, new_id: NewId) -> Effect:
    if intent.status != CAPTURED:
        raise _unexpected(intent, "refunded")
    if not intent.refundable:
        raise stripe_error(
            400, "charge_already_refunded", f"The charge of {intent.ref} is refunded already."
        )
    if amount > intent.refundable:
        raise stripe_error(
            400,
            "amount_too_large",
            f"Refund amount ({amount}) is greater than unrefunded amount on charge "
            f"({intent.refundable}).",
            param="amount",
        )
    return Effect(
        ref=new_id("re"),
        parent=intent.ref,
        amount=amount,
        currency=intent.currency,
        kind="refund",
    )


def _amount(call: Call, name: str) -> int:
    value = str(call.params.get(name, ""))
    if not (value.isascii() and value.isdigit() and len(value) <= 12 and int(value) > 0):
        raise _invalid(
            name,
            f"Invalid {name}: '{value}' must be a positive whole number of minor units.",
            "parameter_invalid_integer",
        )
    return int(value)


def _invalid(param: str, message: str, code: str = "parameter_invalid") -> Refusal:
    return Refusal(400, code, message, param=param)


def _unexpected(intent: Intent, wish: str) -> Refusal:
    return stripe_error(
        400,
        "payment_intent_unexpected_state",
        f"This PaymentIntent ({intent.ref}) could not be {wish} because it has a status of "
        f"{intent.status}.",
    )


def _intent(entry: Entry) -> Intent:
    method, metadata = entry.detail
    return Intent(
        ref=entry.ref or "",
        order=entry.order,
        key=entry.key,
        amount=entry.amount or 0,
        currency=entry.currency or "",
        created=int(entry.at),
        method=method,
        metadata=metadata,
    )


def _show(intent: Intent, status: str, received: int) -> Json:
    return {
        "id": intent.ref,
        "object": "payment_intent",
        "amount": intent.amount,
        "amount_capturable": intent.amount if status == HELD else 0,
        "amount_received": received,
        "capture_method": "manual",
        "created": intent.created,
        "currency": intent.currency,
        "latest_charge": "ch_" + intent.ref.partition("_")[2],
        "livemode": False,
        "metadata": intent.metadata,
        "payment_method": intent.method,
        "payment_method_types": ["card"],
        "status": status,
    }


def _show_refund(entry: Entry) -> Json:
    refund: dict[str, Any] = {
        "id": entry.ref,
        "object": "refund",
        "amount": entry.amount,
        "created": int(entry.at),
        "currency": entry.currency,
        "metadata": {},
        "payment_intent": entry.parent,
        "status": "succeeded",
    }
    return refund
