"""The payment provider, by Stripe's REST API: authorize first, capture once goods can be shipped.

Source: Stripe's API reference (PaymentIntents with manual capture, Cancel, Refunds, Errors,
Idempotent requests). Stripe does not report the result of a key: a call in doubt is repeated. A
day later Stripe has forgotten the key, and staff must decide.
Works against Stripe itself: set PAYMENT_URL=https://api.stripe.com and PAYMENT_SECRET_KEY.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from orchestration.api import Call, Fault, Rejected, Unknown, action

from .partner import MEND_WITHIN, PartnerAgent
from .shapes import Authorization, Capture, Charge, Status


class Payment(PartnerAgent):
    """Wraps payment intents. Amounts are in minor units."""

    name = "payment"
    partner = "payment"
    base_url = settings.PAYMENT_URL
    policy = {
        "time_allowed": 15.0,
        "call_timeout": 6.0,
        "tries": 2,
        "failure_threshold": 5,
        "key_memory": 86_400.0,  # Stripe may forget keys that are at least 24 hours old
        "on_rejection": "wait",  # a customer whose card was declined may use another
        "resolve_within": MEND_WITHIN,
    }

    def headers(self) -> dict[str, str]:
        """Return the credentials."""
        return {"Authorization": f"Bearer {settings.PAYMENT_SECRET_KEY}"}

    @action
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
            # the customer has left, so a bank that wants to ask them declines
            "error_on_requires_action": "true",
            "metadata[order]": wanted.order,
        }
        return await self._post(call, "/v1/payment_intents", form, status="requires_capture")

    @action
    async def capture(self, call: Call, wanted: Capture) -> Status:
        """Take an amount that is held."""
        form = {"amount_to_capture": str(wanted.amount)}
        path = f"/v1/payment_intents/{wanted.payment}/capture"
        return await self._post(call, path, form, status="succeeded")

    @action
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

    @action
    async def void(self, call: Call, wanted: Charge) -> Status:
        """Cancel an authorization, or refund it if it was taken."""
        path = f"/v1/payment_intents/{wanted.payment}"
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


def _unexpected(answer: Status, wanted: str) -> Unknown:
    return Unknown("unexpected_status", f"{answer.id} is {answer.status}, not {wanted}")
