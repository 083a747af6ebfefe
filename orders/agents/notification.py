"""The mail service."""

from html import escape
from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .json_schemas import TEXT, exact_object, open_object
from .partner import KeyedAgent

PARCEL = "{parcel}"  # where the tracking number goes
CODES = "{codes}"  # where the codes of gift cards go
MAIL = open_object(subject=TEXT, text=TEXT)
# one tracking number, or those of several parcels, without those that were cancelled
PARCELS = {
    "anyOf": [
        TEXT,
        {"type": "array", "items": {"anyOf": [open_object(tracking=TEXT), {"type": "null"}]}},
    ]
}
SENT = {
    "anyOf": [
        exact_object(order=TEXT, to=TEXT, mail=MAIL, parcel=PARCELS),
        exact_object(to=TEXT, mail=MAIL),
        exact_object(to=TEXT, mail=MAIL, codes=TEXT),
        exact_object(order=TEXT, to=TEXT, subject=TEXT, text=TEXT),
    ]
}


class Notification(KeyedAgent):
    """Wraps the mail service. A sent mail cannot be undone."""

    name = "notification"
    partner = "mail"
    base_url = settings.MAIL_URL
    # a mail can wait, so it is tried for longer than a payment before staff must act
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 8}
    results = {"send": {"id": str}}

    @action(
        accepts=SENT,
        returns=exact_object(id=TEXT),
        guarded=(
            "order",
            "to",
            "mail",
            "parcel",
            "codes",
            "subject",
            "text",
        ),  # it speaks for the shop
    )
    async def send(self, call: Call) -> dict[str, Any]:
        """Send {order?, to, mail: {subject, text, html?}, parcel? or codes?}; returns {id}.

        The last `{parcel}` in the text stands for `parcel`, one or several, the last `{codes}` for `codes`,
        one a line. Orders that were placed before there was HTML ask for {order, to, subject, text}.
        """
        asked = dict(call.payload)
        mail, parcel, codes = (asked.pop(name, {}) for name in ("mail", "parcel", "codes"))
        if isinstance(parcel, list):
            parcel = ", ".join(sent["tracking"] for sent in parcel if sent)
        mark, words = (CODES, codes) if codes else (PARCEL, parcel or PARCEL)
        forms = {"text": words, "html": escape(words).replace("\n", "<br>")}
        filled = {
            name: _with(text, mark, forms.get(name, mark)) for name, text in mail.items() if text
        }
        return await self.done(call, "/mail/messages", {**asked, **filled})


def _with(text: str, mark: str, words: str) -> str:
    """Return a letter with words for the last mark; a customer's name before it may be anything."""
    before, last, after = text.rpartition(mark)
    return f"{before}{words}{after}" if last else text
