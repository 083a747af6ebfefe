"""The two partners without state of their own: the mailer, and a bare one for benchmarks."""

from typing import Any

from sandbox.fields import optional_text, text
from sandbox.partner import NOTHING, Call, Effect, Entry, Json, NewId, Partner


class Mail(Partner):
    """Takes messages to send; undoing one recalls it."""

    name = "mail"

    def __init__(self) -> None:
        self.sent: dict[str, Entry] = {}  # by id, oldest first
        self.recalled: set[str] = set()

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Accept a message {order?, to, subject, text, html?}."""
        optional_text(call.params, "order")
        message: dict[str, Any] = {"to": text(call.params, "to")}
        message["subject"] = text(call.params, "subject")
        message["text"] = text(call.params, "text")
        html = optional_text(call.params, "html")
        if html:
            message["html"] = html
        return Effect(202, ref=new_id("msg"), detail=message)

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Recall the message."""
        _ = new_id
        ref = done.ref or ""
        return NOTHING if ref in self.recalled else Effect(ref=ref, kind="recall")

    def apply(self, entry: Entry) -> str | None:
        """Keep what is sent, and note a recall."""
        if entry.effect == "send":
            self.sent[entry.ref or ""] = entry
        if entry.effect != "recall":
            return None
        self.recalled.add(entry.ref or "")
        return entry.target

    def body(self, entry: Entry) -> Json:
        """Return the message's id."""
        return {"id": entry.ref, "status": "accepted", "order": entry.order}

    def message(self, entry: Entry) -> Json:
        """Return an accepted message as the list shows it."""
        status = "recalled" if entry.ref in self.recalled else "accepted"
        return {"id": entry.ref, "order": entry.order, "status": status, **entry.detail}


class Bench(Partner):
    """Nothing but idempotency and a ledger entry; undoing a call voids it."""

    name = "bench"

    def __init__(self) -> None:
        self.voided: set[str] = set()

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Accept any JSON object; `order` is the only field that is looked at."""
        optional_text(call.params, "order")
        return Effect(201, ref=new_id("call"))

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Void the call."""
        _ = new_id
        ref = done.ref or ""
        return NOTHING if ref in self.voided else Effect(ref=ref, kind="void")

    def apply(self, entry: Entry) -> str | None:
        """Note a void."""
        if entry.effect != "void":
            return None
        self.voided.add(entry.ref or "")
        return entry.target

    def body(self, entry: Entry) -> Json:
        """Return the call's id."""
        return {"id": entry.ref, "status": "done", "order": entry.order}
