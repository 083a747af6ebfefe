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

from .json_schemas import CURRENCY, POSITIVE, TEXT, exact_object
from .partner import MEND_WITHIN, PartnerAgent

ID_AND_STATUS = {"id": str, "status": str}
INTENT = {**ID_AND_STATUS, "amount": int, "currency": str}
MISSING = "resource_missing"
OF_PAYMENT = exact_object(payment=TEXT)
STATUS = exact_object(id=TEXT, status=TEXT)  # of an intent or a refund


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

    @action(
        accepts=exact_object(order=TEXT, amount=POSITIVE, currency=CURRENCY, payment_method=TEXT),
        returns=STATUS,
        guarded=("order", "amount", "currency", "payment_method"),
    )
    async def authorize(self, call: Call) -> dict[str, Any]:
        """Authorize {order, amount, currency, payment_method}; returns {id, status}."""
        payload = call.payload
        form = {
            "amount": str(payload["amount"]),
            "currency": payload["currency"].lower(),
            "payment_method": payload["payment_method"],
            # cards only: other methods redirect the customer
            "payment_method_types[]": "card",
            "capture_method": "manual",
            "confirm": "true",
            **self.without_customer,
            "metadata[order]": payload["order"],
        }
        answer = await self._post(call, "/v1/payment_intents", form, status="requires_capture")
        return {"id": answer["id"], "status": answer["status"]}

    @action(
        accepts=exact_object(payment=TEXT, amount=POSITIVE),
        returns=STATUS,
        guarded=("payment", "amount"),
    )
    async def capture(self, call: Call) -> dict[str, Any]:
        """Capture {amount} of {payment}; returns {id, status}."""
        form = {"amount_to_capture": str(call.payload["amount"])}
        path = _path(call.payload["payment"])
        answer = await self._post(call, f"{path}/capture", form, status="succeeded")
        return {"id": answer["id"], "status": answer["status"]}

    @action(accepts=OF_PAYMENT, returns=STATUS, guarded=("payment",))
    async def refund(self, call: Call) -> dict[str, Any]:
        """Refund what is captured of {payment} and not refunded yet; returns {id, status}."""
        payment = call.payload["payment"]
        try:
            answer = await self.post(
                call, "/v1/refunds", form={"payment_intent": payment}, expect=ID_AND_STATUS
            )
        except Rejected as fault:
            if fault.code == "charge_already_refunded":  # by hand, for example
                return {"id": payment, "status": "refunded"}
            raise
        if answer["status"] in {"failed", "canceled"}:
            raise Rejected("refund_failed", f"refund {answer['id']} is {answer['status']}")
        if answer["status"] not in {"succeeded", "pending"}:  # pending: the bank is slow
            raise _unexpected(answer, "a completed refund")
        return {"id": answer["id"], "status": answer["status"]}

    @action(accepts=OF_PAYMENT, returns=STATUS, guarded=("payment",))
    async def void(self, call: Call) -> dict[str, Any]:
        """Cancel the authorization {payment}, or refund it if captured; returns {id, status}."""
        path = _path(call.payload["payment"])
        try:
            answer = await self._post(call, f"{path}/cancel", {}, status="canceled")
        except Rejected as fault:
            if fault.code != "payment_intent_unexpected_state":
                raise
            intent = await self.get(call, path, expect=ID_AND_STATUS)
            if intent is not None and intent["status"] == "succeeded":
                # another operation needs another key, the same in every attempt
                return await self.refund(replace(call, key=f"{call.key}:refund"))
            if intent is None or intent["status"] != "canceled":
                raise
            answer = intent  # by hand, or because the authorization expired
        return {"id": answer["id"], "status": answer["status"]}

    async def look_up(self, call: Call, result: dict[str, Any]) -> bool | None:
        """Return whether an intent is as a person says; a refund is not shown by its intent."""
        payload = call.payload
        intent = await self.get(call, _path(payload.get("payment", result["id"])), expect=INTENT)
        if intent is None:
            return False
        order = (intent.get("metadata") or {}).get("order")
        match call.action:
            case "authorize":
                held = intent["status"] in {"requires_capture", "succeeded"} and (
                    (intent["id"], intent["amount"], intent["currency"])
                    == (result["id"], payload["amount"], payload["currency"].lower())
                )
                # one that was made in Stripe's own pages names no order
                return None if held and not order else held and order == payload["order"]
            case "capture":
                taken = (intent["id"], intent["status"], intent.get("amount_received"))
                return taken == (result["id"], "succeeded", payload["amount"])
            case "void" if intent["status"] != "succeeded":
                return (intent["id"], intent["status"]) == (result["id"], "canceled")
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

    async def _post(
        self, call: Call, path: str, form: Mapping[str, str], *, status: str
    ) -> dict[str, Any]:
        """POST a form; raise `Unknown` unless the intent is in `status`."""
        answer = await self.post(call, path, form=form, expect=ID_AND_STATUS)
        if answer["status"] != status:
            raise _unexpected(answer, status)
        return answer


def _path(payment: str) -> str:
    """Return the path of an intent; the id may have been typed by a person."""
    return f"/v1/payment_intents/{quote(payment, safe='')}"


def _unexpected(answer: Mapping[str, Any], expected: str) -> Unknown:
    return Unknown("unexpected_status", f"{answer['id']} is {answer['status']}, not {expected}")
