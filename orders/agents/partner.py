"""What our partners' services have in common."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from django.conf import settings

from orchestration.api import Call, Fault, Health, HttpAgent, LedgerEntry, Rejected, Unknown

from .. import ledger
from .shapes import TEXT, record

REUSED = {"key_reused", "idempotency_key_reused"}  # the key came before, with another payload
AT_WORK = {"key_in_use", "idempotency_key_in_use"}  # a request with the same key is still at work
BY_KEY = record(key=TEXT)  # what an undo by key takes
MEND_WITHIN = 1_800.0  # seconds for which an order is kept that only its customer can mend


class PartnerAgent(HttpAgent):
    """Calls a service that recognises repeats by key, and says so while the first is at work."""

    partner: ClassVar[str]  # the service's own name for itself

    def ledger(self) -> Iterable[LedgerEntry] | None:
        """Return what the partner did; real services have no such list, only the sandbox."""
        if self.base_url != settings.SANDBOX_URL:
            return None
        return ledger.entries(self.base_url, self.partner)

    def refusal(self, status: int, answer: Mapping[str, Any]) -> Fault:
        """Return what a 4xx answer means; of a key in use, that a repeat will find the result.

        Of a key that was used for something else, that an effect may stand under it.

        Our partners say why they refuse: an answer without that is not theirs, or was spoiled.
        """
        error = answer.get("error")
        if not isinstance(error, Mapping):
            return Unknown("unexpected_answer", f"HTTP {status}, and no reason in: {answer}")
        fault = super().refusal(status, answer)
        if fault.code in AT_WORK:
            return Unknown(fault.code, fault.message, health=Health.GOOD)
        if fault.code in REUSED or error.get("type") == "idempotency_error":
            return Rejected(fault.code, fault.message, in_doubt=True)
        # a conflict that a partner gives a reason of its own is none with the same key
        named = fault.code != f"http_{status}"
        stored = self.stores_refusals
        return Rejected(fault.code, fault.message, stored=stored) if named else fault


class KeyedAgent(PartnerAgent):
    """Calls a service that keeps what came of each key: it can be asked, and undoes by key.

    After an undo by key it refuses a request under that key which arrives late.
    """

    results: ClassVar[Mapping[str, Mapping[str, type]]]  # by action: its result's fields

    async def done(self, call: Call, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST what an action is about; return its result."""
        fields = self.results[call.action]
        answer = await self.post(call, path, body=body, expect=fields)
        return {name: answer[name] for name in fields}

    async def undone(self, call: Call) -> dict[str, Any]:
        """Undo what {key} made, or have it refused should it still come; returns {effect}."""
        return await self.done(call, f"/{self.partner}/undo", {"key": call.payload["key"]})

    async def ask(self, call: Call) -> dict[str, Any] | None:
        """Ask what came of the call's key. Our partners keep that for ever."""
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
            return {name: answer[name] for name in fields}
        raise Unknown("unexpected_answer", f"{known['status']}: {answer}")

    def knows_nothing(self, status: int, answer: Mapping[str, Any]) -> bool:
        """Return whether the service says that nothing was ever done under a key."""
        error = answer.get("error")
        return status == 404 and isinstance(error, Mapping) and error.get("code") == "unknown_key"
