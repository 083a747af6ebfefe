"""The payment partner, in the shape of Stripe's REST API: manual capture, cancel, refund.

Source of shapes and rules: Stripe's API reference (PaymentIntents, Refunds, Errors, Idempotent
requests, Testing). Amounts are in minor units of their currency.
"""

from typing import Any

from sandbox.cards import CARDS
from sandbox.intents import (
    ASKS,
    BANK,
    CANCELED,
    CAPTURED,
    HELD,
    REFUSED,
    RETURN,
    TRANSFER,
    Intent,
)
from sandbox.partner import NOTHING, Call, Effect, Entry, Json, NewId, Partner
from sandbox.refusals import Refusal, declined, stripe_error

AT_FIRST = {"request": ASKS, "charge": CAPTURED, "authorize": HELD}  # status by effect
CUSTOMER_ACTS = {"confirm", "refuse", "expire"}  # what happens to an intent without a request
ENDED = {CAPTURED, CANCELED}


class Payment(Partner):
    """Authorizes, captures, cancels and refunds payments."""

    name = "payment"

    def __init__(self, site: str = "") -> None:
        """Begin without intents; `site` is the address of the bank's pages, without a slash."""
        self.site = site
        self.intents: dict[str, Intent] = {}

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Authorize, capture, cancel or refund; raises Refusal in Stripe's shape."""
        if call.action == "authorize":
            return _authorize(call, new_id, self.site)
        if call.action == "customer":
            return Effect(ref=new_id("cus"))
        intent = self.intent(call.ref or "")
        if call.action in CUSTOMER_ACTS:
            return _act(intent, call.action)
        if call.action == "capture":
            return _capture(intent, call)
        if call.action == "cancel":
            if intent.status in ENDED:
                raise _unexpected(intent, "canceled")
            return _cancel(intent)
        amount = _amount(call, "amount") if "amount" in call.params else intent.refundable
        return _refund(intent, amount, new_id)

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Cancel the authorization, or refund the rest of the captured amount."""
        intent = self.intents[done.ref or ""]
        if intent.refundable:
            return _refund(intent, intent.refundable, new_id)
        if done.action == "authorize" and intent.status not in ENDED:
            return _cancel(intent)
        return NOTHING

    def apply(self, entry: Entry) -> str | None:
        """Move the money; cancel undoes the authorization, a full refund the capture."""
        ref = entry.ref or ""
        if entry.effect == "refund":
            paid = self.intents[entry.parent or ""]
            paid.refunded += entry.amount or 0
            return None if paid.refundable else paid.capture_key
        if entry.action == "authorize":
            made = self.intents[ref] = Intent.made_by(entry)
            if entry.effect == "request":
                made.status = ASKS
            else:
                made.pay()
        elif entry.action != "customer":
            return self._change(self.intents[ref], entry)
        return None

    def _change(self, known: Intent, entry: Entry) -> str | None:
        """Apply what happened to an intent; return the key of the call that this undoes, if any."""
        match entry.action:
            case "confirm":
                known.pay()
            case "refuse":
                known.status = REFUSED
            case "expire":
                known.status, known.expired = CANCELED, True
            case "capture":
                known.status, known.captured = CAPTURED, entry.amount or 0
                known.capture_key = entry.key
            case _:
                known.status = CANCELED
                return known.key
        return None

    def body(self, entry: Entry) -> Json:
        """Return the payment intent, or the refund, as it was right after the call."""
        if entry.action == "refund":
            return _show_refund(entry)
        if entry.action == "customer":
            return {"id": entry.ref, "object": "customer", "livemode": False}
        known = self.intents[entry.ref or ""]
        if entry.action == "authorize":
            status = AT_FIRST[entry.effect]
            return known.show(status, known.amount if status == CAPTURED else 0)
        if entry.action == "capture":
            return known.show(CAPTURED, entry.amount or 0)
        return known.show(CANCELED, 0)

    def view(self, ref: str) -> Json | None:
        """Return the current payment intent."""
        intent = self.intents.get(ref)
        return intent.show(intent.status, intent.captured) if intent else None

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


def _authorize(call: Call, new_id: NewId, site: str) -> Effect:
    amount = _amount(call, "amount")
    currency = call.params.get("currency", "")
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha()):
        raise _invalid("currency", f"Invalid currency: '{currency}'. It must be like 'eur'.")
    if call.params.get("confirm") != "true":
        raise _invalid("confirm", "This sandbox needs confirm=true, as the payment agent sends.")
    capture = call.params.get("capture_method", "automatic")
    if capture not in {"automatic", "manual"}:
        raise _invalid("capture_method", f"Invalid capture_method: '{capture}'.")
    automatic = capture == "automatic"
    method, asks = _method(call, automatic=automatic)
    metadata = {
        name[9:-1]: value
        for name, value in call.params.items()
        if name.startswith("metadata[") and name.endswith("]")
    }
    ref = new_id("pi")
    pages = {BANK: f"{site}/bank/{ref}", RETURN: call.params.get(RETURN, "")} if asks else {}
    return Effect(
        ref=ref,
        amount=amount,
        currency=currency.lower(),
        kind="request" if asks else "charge" if automatic else "authorize",
        detail=[method, metadata, automatic, pages],
    )


def _method(call: Call, *, automatic: bool) -> tuple[str, bool]:
    """Return how an intent is paid, and whether it awaits its customer; raises Refusal."""
    if call.params.get("payment_method_data[type]") == TRANSFER:
        if not automatic:
            raise _invalid("capture_method", "A bank transfer cannot be captured later.")
        if not call.params.get("customer"):
            raise _invalid("customer", "A bank transfer needs a customer.", "parameter_missing")
        return TRANSFER, True
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
    if card.asks and call.params.get("error_on_requires_action") == "true":
        raise declined("authentication_required", "The bank asks for a confirmation.")
    if card.asks and not call.params.get(RETURN):
        raise _invalid(RETURN, "The bank asks the customer: say where to return to.")
    return method, card.asks


def _act(known: Intent, action: str) -> Effect:
    """Return what happens to an intent without a request; raises Refusal if it is too late for that."""
    if known.status != (HELD if action == "expire" else ASKS):
        raise _unexpected(known, "changed")
    paid = "charge" if known.automatic else "authorize"
    kind = {"confirm": paid, "refuse": "refuse", "expire": "cancel"}[action]
    return Effect(ref=known.ref, amount=known.amount, currency=known.currency, kind=kind)


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
    kind = "cancel" if intent.status == HELD else "close"  # nothing was held yet
    return Effect(ref=intent.ref, amount=intent.amount, currency=intent.currency, kind=kind)


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
        payment_intent=intent.show(intent.status, intent.captured),
    )


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
