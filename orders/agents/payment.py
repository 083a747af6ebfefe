"""The payment provider, by Stripe's REST API: money is held first, and taken once goods can go.

Source: Stripe's API reference (PaymentIntents with manual capture, Errors, Idempotent requests).
Works against Stripe itself: set PAYMENT_URL=https://api.stripe.com and PAYMENT_SECRET_KEY.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from orchestration.api import Call, Rejected, Transient, Unknown, action

from .partner import PartnerAgent


class Payment(PartnerAgent):
    """Wraps payment intents. Amounts are in minor units."""

    name = "payment"
    base_url = settings.PAYMENT_URL
    policy = {"time_allowed": 15.0, "call_timeout": 6.0, "tries": 2, "failure_threshold": 5}

    def headers(self) -> dict[str, str]:
        """Return the credentials."""
        return {"Authorization": f"Bearer {settings.PAYMENT_SECRET_KEY}"}

    @action
    async def authorize(self, call: Call) -> dict[str, Any]:
        """Hold {order, amount, currency, payment_method} on the card; returns {id, status}."""
        wanted = call.payload
        form = {
            "amount": str(wanted["amount"]),
            "currency": wanted["currency"].lower(),
            "payment_method": wanted["payment_method"],
            # cards only: other methods would send the customer to another page
            "payment_method_types[]": "card",
            "capture_method": "manual",
            "confirm": "true",
            # a bank that wants to ask the customer, who is gone by now, is a refusal
            "error_on_requires_action": "true",
            "metadata[order]": wanted["order"],
        }
        answer = await self._post(call, "/v1/payment_intents", form, status="requires_capture")
        return {"id": answer["id"], "status": answer["status"]}

    @action
    async def capture(self, call: Call) -> dict[str, Any]:
        """Take {amount} of what {payment} holds; returns {id, status}."""
        form = {"amount_to_capture": str(call.payload["amount"])}
        path = f"/v1/payment_intents/{call.payload['payment']}/capture"
        answer = await self._post(call, path, form, status="succeeded")
        return {"id": answer["id"], "status": answer["status"]}

    def refusal(self, status: int, answer: Mapping[str, Any]) -> Rejected | Transient:
        """Return what an error means; for a card, the bank's own reason where it gives one."""
        error = answer.get("error")
        detail = error if isinstance(error, Mapping) else {}
        if detail.get("type") == "card_error":
            code = str(detail.get("decline_code") or detail.get("code") or "card_declined")
            return Rejected(code, str(detail.get("message") or ""))
        return super().refusal(status, answer)

    async def _post(
        self, call: Call, path: str, form: Mapping[str, str], *, status: str
    ) -> dict[str, Any]:
        """POST a form; anything but an intent in `status` needs a person's eye."""
        answer = await self.post(call, path, form=form, expect={"id": str, "status": str})
        if answer["status"] != status:
            raise Unknown(
                "unexpected_status",
                f"payment {answer['id']} is {answer['status']}, not {status}",
            )
        return answer
