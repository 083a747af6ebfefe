"""The bench partner: accepts any call; for benchmarks and for workflows of other kinds."""

from sandbox.fields import optional_text
from sandbox.partner import NOTHING, Call, Effect, Entry, Json, NewId, Partner


class Bench(Partner):
    """Only writes a ledger entry per key; undoing a call voids it."""

    name = "bench"

    def __init__(self) -> None:
        self.voided: set[str] = set()

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Accept any JSON object; only its `order` is read."""
        optional_text(call.params, "order")
        return Effect(201, ref=new_id("call"))

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Void the call."""
        _ = new_id
        ref = done.ref or ""
        return NOTHING if ref in self.voided else Effect(ref=ref, kind="void")

    def apply(self, entry: Entry) -> str | None:
        """Record a void."""
        if entry.effect != "void":
            return None
        self.voided.add(entry.ref or "")
        return entry.target

    def body(self, entry: Entry) -> Json:
        """Return the call's id."""
        return {"id": entry.ref, "status": "done", "order": entry.order}
