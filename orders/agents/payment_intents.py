"""What the payment intents of the provider say: held, taken, refused, or awaiting their customer.

Source: Stripe's API reference (the PaymentIntent object, its statuses and `next_action`; Event types).
"""

from collections.abc import Mapping
from typing import Any, cast

from orchestration.api import Later, Rejected, Reported, Unknown

from .error_codes import CANCELED, CARD_REFUSED
from .risk import judged

Intent = Mapping[str, Any]
TAKEN, ENDED, REFUSED = "succeeded", "canceled", "requires_payment_method"
CHARGE = "latest_charge"
TRANSFER = "customer_balance"  # Stripe's type of payment by bank transfer
BANK_TRANSFER = "display_bank_transfer_instructions"  # its `next_action`
# Seconds between questions about a payment that awaits its customer, in case its webhook is lost.
LOOK_FOR_CARD, LOOK_FOR_TRANSFER = 20.0, 600.0
EVENTS = {
    "payment_intent.amount_capturable_updated",
    "payment_intent.succeeded",
    "payment_intent.payment_failed",
    "payment_intent.canceled",
}


def outcome(intent: Intent) -> dict[str, Any]:
    """Return the result of an authorization: {id, status, risk?, review?}, `taken` if it is paid already.

    Raises `Later` while the intent awaits its customer, and `Rejected` if they or their bank refused.
    """
    status = intent["status"]
    result = {"id": intent["id"], "status": status}
    match status:
        case "requires_capture":
            return {**result, **judged(intent.get(CHARGE))}
        case "succeeded":
            return {**result, "taken": True}
        case "requires_action" | "processing":
            look = LOOK_FOR_TRANSFER if _transfer(intent) else LOOK_FOR_CARD
            accepted = {**result, **_what_to_do(intent)}
            raise Later(accepted=accepted, id=intent["id"], look=look)
        case "requires_payment_method" | "canceled":
            raise Rejected(*refusal(intent))
    raise Unknown("unexpected_status", f"{intent['id']} is {status}")


def refusal(intent: Intent) -> tuple[str, str]:
    """Return code and message of an intent that was refused or cancelled."""
    if intent["status"] == ENDED:
        return CANCELED, f"{intent['id']} was cancelled at the provider"
    error = intent.get("last_payment_error") or {}
    code = error.get("decline_code") or error.get("code") or CARD_REFUSED
    return str(code), str(error.get("message") or "")


def reported(event: Mapping[str, Any]) -> list[Reported]:
    """Return what an event says of an authorization: none for events that end none.

    Other events of the same intents, such as that of its capture, are about what was called.
    """
    intent = event["data"]["object"]
    if event["type"] not in EVENTS or (intent["status"] == TAKEN and not pays_at_once(intent)):
        return []
    about: dict[str, Any] = {"id": str(event["id"]), "of": str(intent["id"])}
    if intent["status"] in {REFUSED, ENDED}:
        code, message = refusal(intent)
        return [Reported(**about, refused=code, message=message)]
    try:
        return [Reported(**about, result=outcome(intent))]
    except Later:
        return []  # an earlier event, delivered late


def pays_at_once(intent: Intent) -> bool:
    """Return whether an intent is not captured by a call: a bank transfer."""
    return intent.get("capture_method") != "manual"


def has_expired(intent: Intent) -> bool:
    """Return whether the provider ended an authorization that was not captured in time."""
    return intent["status"] == ENDED and intent.get("cancellation_reason") == "automatic"


def _transfer(intent: Intent) -> Mapping[str, Any] | None:
    action = intent.get("next_action") or {}
    return cast("Mapping[str, Any] | None", action.get(BANK_TRANSFER))


def _what_to_do(intent: Intent) -> dict[str, Any]:
    """Return what the customer has to do: the bank's page, or how to transfer the amount."""
    if transfer := _transfer(intent):
        account = transfer["financial_addresses"][0]
        return {
            "page": transfer.get("hosted_instructions_url") or "",
            "transfer": {
                "holder": account["iban"].get("account_holder_name") or "",
                "iban": account["iban"]["iban"],
                "bic": account["iban"].get("bic") or "",
                "reference": transfer.get("reference") or "",
                "amount": transfer["amount_remaining"],
            },
        }
    action = intent.get("next_action") or {}
    return {"page": str((action.get("redirect_to_url") or {}).get("url") or "")}
