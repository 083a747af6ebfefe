"""What our partners' services have in common."""

from collections.abc import Mapping
from typing import Any

from orchestration.api import HttpAgent, Rejected, Transient

BUSY = {"key_in_use", "idempotency_key_in_use"}  # a request with the same key is still at work


class PartnerAgent(HttpAgent):
    """Calls a service that recognises repeats by key, and says so while the first is at work."""

    def refusal(self, status: int, answer: Mapping[str, Any]) -> Rejected | Transient:
        """Return what a 4xx answer means: for a key in use, that a repeat will find the result."""
        fault = super().refusal(status, answer)
        if status == 409 and fault.code in BUSY:
            return Transient(fault.code, fault.message)
        return fault
