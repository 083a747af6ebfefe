"""The mailer: accepts messages and recalls them."""

from typing import Any

from sandbox.fields import optional_text, text
from sandbox.partner import NOTHING, Call, Effect, Entry, Json, NewId, Partner


class Mail(Partner):
    """Accepts messages; undoing one recalls it."""

    name = "mail"

    def __init__(self) -> None:
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
        """Record a recall."""
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
