"""Base classes for the agents of the partners."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from django.conf import settings

from orchestration.api import Call, Fault, Health, HttpAgent, LedgerEntry, Rejected, Unknown

from . import partner_ledger
from .json_schemas import TEXT, exact_object

REUSED = {"key_reused", "idempotency_key_reused"}  # the key was used before with another payload
IN_USE = {"key_in_use", "idempotency_key_in_use"}  # a request with the same key still runs
BY_KEY = exact_object(key=TEXT)  # the payload of an undo by key
MEND_WITHIN = 1_800.0  # seconds for which an order waits for its customer to fix it


class PartnerAgent(HttpAgent):
    """Calls a service that recognises repeats by key, and reports while the first still runs."""

    partner: ClassVar[str]  # the service's own name for itself

    def ledger(self) -> Iterable[LedgerEntry] | None:
        """Return what the partner did; only the sandbox has such a list."""
        if self.base_url != settings.SANDBOX_URL:
            return None
        return partner_ledger.entries(self.base_url, self.partner)

    def refusal(self, status: int, answer: Mapping[str, Any]) -> Fault:
        """Return the fault for a 4xx answer.

        A key in use is `Unknown`: a repeat will find the result. A key that was used for another
        payload is in doubt: an effect may exist under it. Partners give a reason; an answer without
        one comes from something else on the way, so it is `Unknown`.
        """
        error = answer.get("error")
        if not isinstance(error, Mapping):
            return Unknown("unexpected_answer", f"HTTP {status} without a reason: {answer}")
        fault = super().refusal(status, answer)
        if fault.code in IN_USE:
            return Unknown(fault.code, fault.message, health=Health.GOOD)
        if fault.code in REUSED or error.get("type") == "idempotency_error":
            return Rejected(fault.code, fault.message, in_doubt=True)
        # a 409 with a reason of its own is not a conflict about the key
        named = fault.code != f"http_{status}"
        stored = self.stores_refusals
        return Rejected(fault.code, fault.message, stored=stored) if named else fault


class KeyedAgent(PartnerAgent):
    """Calls a service that keeps the result of each key, and undoes by key.

    After an undo by key it refuses a late request under that key.
    """

    results: ClassVar[Mapping[str, Mapping[str, type]]]  # by action: the fields of its result

    async def done(self, call: Call, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST an action; return its result."""
        fields = self.results[call.action]
        answer = await self.post(call, path, body=body, expect=fields)
        return self.result_of(call, answer)

    def result_of(self, call: Call, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of an action that was done."""
        return {name: answer[name] for name in self.results[call.action]}

    async def undone(self, call: Call) -> dict[str, Any]:
        """Undo what {key} did, or have a late request refused; returns {effect}."""
        return await self.done(call, f"/{self.partner}/undo", {"key": call.payload["key"]})

    async def ask(self, call: Call) -> dict[str, Any] | None:
        """Return the result under the call's key, or None. Partners keep keys permanently."""
        path = f"/keys/{quote(call.key, safe='')}?partner={self.partner}"
        known = await self.get(call, path, expect={"status": str, "response": dict})
        if known is None:
            return None
        answer = known["response"]
        if known["status"] == "rejected":
            raise self.refusal(int(known.get("http_status") or 400), answer)
        fields = self.results[call.action]
        if known["status"] == "done" and all(
            isinstance(answer.get(name), kind) for name, kind in fields.items()
        ):
            return self.result_of(call, answer)
        raise Unknown("unexpected_answer", f"{known['status']}: {answer}")

    def knows_nothing(self, status: int, answer: Mapping[str, Any]) -> bool:
        """Return whether the answer means that nothing was done under a key."""
        error = answer.get("error")
        return status == 404 and isinstance(error, Mapping) and error.get("code") == "unknown_key"
