"""The payment provider, by Stripe's REST API: authorize first, capture once goods can be shipped.

Source: Stripe's API reference (PaymentIntents with manual capture, Cancel, Refunds, Errors,
Idempotent requests, Bank transfers). Stripe does not report the result of a key: a call in doubt is
repeated. A day later Stripe has forgotten the key, and staff must decide.
Works against Stripe itself: docs/use/services.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings

from orchestration.api import Call, Fault, Rejected, Reported, Unknown, Webhook, action

from . import payment_intents
from .error_codes import DECLINED, EXPIRED
from .json_schemas import CURRENCY, POSITIVE, TEXT, exact_object, open_object, optional
from .partner import MEND_WITHIN, PartnerAgent
from .payment_intents import TRANSFER

ID_AND_STATUS = {"id": str, "status": str}
INTENT = {**ID_AND_STATUS, "amount": int, "currency": str}
MISSING, UNEXPECTED_STATE = "resource_missing", "payment_intent_unexpected_state"
OF_PAYMENT = exact_object(payment=TEXT)
PAYMENT = optional(
    exact_object(order=TEXT, amount=POSITIVE, currency=CURRENCY, payment_method=TEXT, page=TEXT),
    "page",  # requests of former releases lack it
)
REFUND = optional(exact_object(payment=TEXT, amount=POSITIVE), "amount")
CAPTURE = optional(
    exact_object(payment=TEXT, amount=POSITIVE, payment_method=TEXT), "payment_method"
)
STATUS = exact_object(id=TEXT, status=TEXT)  # of an intent or a refund
AUTHORIZED = open_object(id=TEXT, status=TEXT)
AUTHORIZED["properties"] |= {
    "risk": {"type": "integer", "minimum": 0, "maximum": 100},
    "review": {
        "type": "boolean",
        "default": False,
        "description": "A person decides, by the risk.",
    },
    "taken": {"type": "boolean", "default": False, "description": "Paid already: a transfer."},
}
EXPANDED = {"expand[]": payment_intents.CHARGE}  # else Stripe sends its id alone, without the risk


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

    def headers(self) -> dict[str, str]:
        """Return the credentials."""
        return {"Authorization": f"Bearer {settings.PAYMENT_SECRET_KEY}"}

    @classmethod
    def receive(cls, webhook: Webhook) -> list[Reported]:
        """Return what Stripe reports of payments that awaited their customers."""
        webhook.verify_stripe(*settings.PAYMENT_WEBHOOK_SECRETS)
        return payment_intents.reported(webhook.json())

    @action(
        accepts=PAYMENT,
        returns=AUTHORIZED,
        guarded=("order", "amount", "currency", "payment_method"),
    )
    async def authorize(self, call: Call) -> dict[str, Any]:
        """Authorize {order, amount, currency, payment_method, page?}.

        Returns {id, status, risk?, review?, taken?}. Raises `Later` where the bank asks the customer, whom
        it sends back to `page`, and for a bank transfer, which arrives in days.
        """
        payload = call.payload
        form = {
            "amount": str(payload["amount"]),
            "currency": payload["currency"].lower(),
            "confirm": "true",
            "metadata[order]": payload["order"],
            **EXPANDED,
        }
        if payload["payment_method"] == TRANSFER:
            form |= await self._by_transfer(call)
        else:
            form |= {
                "payment_method": payload["payment_method"],
                "payment_method_types[]": "card",
                "capture_method": "manual",
                **self.of_customer(payload),
            }
        intent = await self.post(call, "/v1/payment_intents", form=form, expect=ID_AND_STATUS)
        return payment_intents.outcome(intent)

    def of_customer(self, payload: Mapping[str, Any]) -> dict[str, str]:
        """Return where the bank sends the customer back to; without that, it declines to ask them.

        Stripe knows these fields; a stand-in may not.
        """
        if page := payload.get("page"):
            return {"return_url": page}
        return {"error_on_requires_action": "true"}

    async def _by_transfer(self, call: Call) -> dict[str, str]:
        """Make the customer to whom a transfer is assigned; return the fields of the intent."""
        of_order = {"metadata[order]": call.payload["order"]}
        again = replace(call, key=f"{call.key}:customer")
        customer = await self.post(again, "/v1/customers", form=of_order, expect={"id": str})
        options = f"payment_method_options[{TRANSFER}]"
        return {
            "customer": customer["id"],
            "payment_method_types[]": TRANSFER,
            "payment_method_data[type]": TRANSFER,
            f"{options}[funding_type]": "bank_transfer",
            f"{options}[bank_transfer][type]": "eu_bank_transfer",
            f"{options}[bank_transfer][eu_bank_transfer][country]": "DE",
        }

    async def look(self, call: Call) -> dict[str, Any] | None:
        """Return what came of an authorization that awaited its customer; raises `Later` if nothing yet."""
        path = f"{_path(call.accepted['id'])}?{urlencode(EXPANDED, safe='[]')}"
        intent = await self.get(call, path, expect=ID_AND_STATUS)
        return None if intent is None else payment_intents.outcome(intent)

    @action(
        accepts=CAPTURE,
        returns=STATUS,
        guarded=("payment", "amount", "payment_method"),
    )
    async def capture(self, call: Call) -> dict[str, Any]:
        """Capture {amount} of {payment}; returns {id, status}.

        If the authorization has expired, the amount is charged anew: to {payment_method}, or else to the
        card that was authorized.
        """
        form = {"amount_to_capture": str(call.payload["amount"])}
        path = _path(call.payload["payment"])
        try:
            answer = await self._post(call, f"{path}/capture", form, status="succeeded")
        except Rejected as fault:
            if fault.code != UNEXPECTED_STATE:
                raise
            intent = await self.get(call, path, expect=INTENT)
            if intent is None or not payment_intents.has_expired(intent):
                raise
            answer = await self._charge_anew(call, intent)
        return {"id": answer["id"], "status": answer["status"]}

    async def _charge_anew(self, call: Call, expired: Mapping[str, Any]) -> dict[str, Any]:
        """Charge what was authorized and has expired, at once and without the customer."""
        form = {
            "amount": str(call.payload["amount"]),
            "currency": expired["currency"],
            "payment_method": call.payload.get("payment_method") or expired["payment_method"],
            "payment_method_types[]": "card",
            "confirm": "true",
            "error_on_requires_action": "true",  # the customer has left
            "metadata[order]": expired["metadata"]["order"],
        }
        again = replace(call, key=f"{call.key}:anew")  # another operation needs another key
        try:
            return await self._post(again, "/v1/payment_intents", form, status="succeeded")
        except Rejected as fault:
            if fault.code in DECLINED:
                raise
            # Stripe takes a card again only if it was stored; the customer may use another one
            raise Rejected(EXPIRED, fault.message, stored=fault.stored) from fault

    @action(accepts=REFUND, returns=STATUS, guarded=("payment", "amount"))
    async def refund(self, call: Call) -> dict[str, Any]:
        """Refund {amount?} of {payment}, or what is captured and not refunded yet; returns {id, status}."""
        payment, amount = call.payload["payment"], call.payload.get("amount")
        form = {"payment_intent": payment, **({"amount": str(amount)} if amount else {})}
        try:
            answer = await self.post(call, "/v1/refunds", form=form, expect=ID_AND_STATUS)
        except Rejected as fault:
            if fault.code == "charge_already_refunded" and not amount:  # by hand, for example
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
            if fault.code != UNEXPECTED_STATE:
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
