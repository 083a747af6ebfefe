"""The payment provider, by Stripe's REST API: authorize first, capture once goods can be shipped.

Source: Stripe's API reference (PaymentIntents with manual capture, Cancel, Refunds, Errors,
Idempotent requests). Stripe does not report the result of a key: a call in doubt is repeated. A
day later Stripe has forgotten the key, and staff must decide.
Works against Stripe itself: docs/use/services.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote

from django.conf import settings

from orchestration.api import Call, Fault, Rejected, Unknown, action

from .partner import MEND_WITHIN, PartnerAgent
from .shapes import Authorization, Capture, Charge, Status

INTENT = {"id": str, "status": str, "amount": int, "currency": str}
MISSING = "resource_missing"


class Payment(PartnerAgent):
    """Wraps payment intents. Amounts are in minor units."""

    name = "payment"
    partner = "payment"
    base_url = settings.PAYMENT_URL
    moves_money = True
    policy = {
        "time_allowed": 15.0,
        "call_timeout": 6.0,
        "tries": 2,
        "failure_threshold": 5,
        "key_memory": 86_400.0,  # Stripe may forget keys that are at least 24 hours old
        "on_rejection": "wait",  # a customer whose card was declined may use another
        "resolve_within": MEND_WITHIN,
    }
    # The customer has left, so a bank that wants to ask them declines. Stripe knows it; a stand-in may not.
    without_customer: ClassVar[Mapping[str, str]] = {"error_on_requires_action": "true"}

    def headers(self) -> dict[str, str]:
        """Return the credentials."""
        return {"Authorization": f"Bearer {settings.PAYMENT_SECRET_KEY}"}

    @action(guarded=("order", "amount", "currency", "payment_method"))
    async def authorize(self, call: Call, wanted: Authorization) -> Status:
        """Hold an amount on a card."""
        form = {
            "amount": str(wanted.amount),
            "currency": wanted.currency.lower(),
            "payment_method": wanted.payment_method,
            # cards only: other methods redirect the customer
            "payment_method_types[]": "card",
            "capture_method": "manual",
            "confirm": "true",
            **self.without_customer,
            "metadata[order]": wanted.order,
        }
        return await self._post(call, "/v1/payment_intents", form, status="requires_capture")

    @action(guarded=("payment", "amount"))
    async def capture(self, call: Call, wanted: Capture) -> Status:
        """Take an amount that is held."""
        form = {"amount_to_capture": str(wanted.amount)}
        path = f"{_path(wanted.payment)}/capture"
        return await self._post(call, path, form, status="succeeded")

    @action(guarded=("payment",))
    async def refund(self, call: Call, wanted: Charge) -> Status:
        """Refund what was taken and is not refunded yet."""
        form = {"payment_intent": wanted.payment}
        try:
            answer = await self.post(call, "/v1/refunds", form=form, expect=Status)
        except Rejected as fault:
            if fault.code == "charge_already_refunded":  # by hand, for example
                return Status(id=wanted.payment, status="refunded")
            raise
        if answer.status in {"failed", "canceled"}:
            raise Rejected("refund_failed", f"refund {answer.id} is {answer.status}")
        if answer.status not in {"succeeded", "pending"}:  # pending: the bank is slow
            raise _unexpected(answer, "a completed refund")
        return answer

    @action(guarded=("payment",))
    async def void(self, call: Call, wanted: Charge) -> Status:
        """Cancel an authorization, or refund it if it was taken."""
        path = _path(wanted.payment)
        try:
            return await self._post(call, f"{path}/cancel", {}, status="canceled")
        except Rejected as fault:
            if fault.code != "payment_intent_unexpected_state":
                raise
            found = await self.get(call, path, expect=Status)
            if found is not None and found.status == "succeeded":
                # another operation needs another key, the same in every attempt
                return await self.refund(replace(call, key=f"{call.key}:refund"), wanted)
            if found is None or found.status != "canceled":
                raise
            return found  # by hand, or because the authorization expired

    async def look_up(self, call: Call, result: dict[str, Any]) -> bool | None:
        """Return whether an intent is as a person says; a refund is not shown by its intent."""
        wanted = call.payload
        found = await self.get(call, _path(wanted.get("payment", result["id"])), expect=INTENT)
        if found is None:
            return False
        order = (found.get("metadata") or {}).get("order")
        match call.action:
            case "authorize":
                held = found["status"] in {"requires_capture", "succeeded"} and (
                    (found["id"], found["amount"], found["currency"])
                    == (result["id"], wanted["amount"], wanted["currency"].lower())
                )
                # one that was made in Stripe's own pages names no order
                return None if held and not order else held and order == wanted["order"]
            case "capture":
                taken = (found["id"], found["status"], found.get("amount_received"))
                return taken == (result["id"], "succeeded", wanted["amount"])
            case "void" if found["status"] != "succeeded":
                return (found["id"], found["status"]) == (result["id"], "canceled")
        return None

    def knows_nothing(self, status: int, answer: Mapping[str, Any]) -> bool:
        """Return whether the answer means that an id does not exist."""
        error = answer.get("error")
        return status == 404 and isinstance(error, Mapping) and error.get("code") == MISSING

    def refusal(self, status: int, answer: Mapping[str, Any]) -> Fault:
        """Return the fault for an error; for a card, with the bank's decline code if it has one."""
        error = answer.get("error")
        detail = error if isinstance(error, Mapping) else {}
        if detail.get("type") == "card_error":
            code = str(detail.get("decline_code") or detail.get("code") or "card_declined")
            # Stripe stores the answer under the key once it has begun to charge the card
            return Rejected(code, str(detail.get("message") or ""), stored=True)
        return super().refusal(status, answer)

    async def _post(self, call: Call, path: str, form: Mapping[str, str], *, status: str) -> Status:
        """POST a form; raise `Unknown` unless the intent is in `status`."""
        answer = await self.post(call, path, form=form, expect=Status)
        if answer.status != status:
            raise _unexpected(answer, status)
        return answer


def _path(payment: str) -> str:
    """Return the path of an intent; the id may have been typed by a person."""
    return f"/v1/payment_intents/{quote(payment, safe='')}"


def _unexpected(answer: Status, wanted: str) -> Unknown:
    return Unknown("unexpected_status", f"{answer.id} is {answer.status}, not {wanted}")
