"""The mailer: tells customers."""

from html import escape
from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .partner import KeyedAgent
from .shapes import TEXT, record, some

PARCEL = "{parcel}"  # where the tracking number goes
MAIL = some(subject=TEXT, text=TEXT)
SENT = {
    "anyOf": [
        record(order=TEXT, to=TEXT, mail=MAIL, parcel=TEXT),
        record(to=TEXT, mail=MAIL),
        record(order=TEXT, to=TEXT, subject=TEXT, text=TEXT),
    ]
}


class Notification(KeyedAgent):
    """Wraps the mail service. What it sent cannot be taken back."""

    name = "notification"
    partner = "mail"
    base_url = settings.MAIL_URL
    # a mail can wait: try for longer than a payment before it becomes somebody's problem
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 8}
    results = {"send": {"id": str}}

    @action(accepts=SENT, returns=record(id=TEXT))
    async def send(self, call: Call) -> dict[str, Any]:
        """Send {order?, to, mail: {subject, text, html?}, parcel?}; returns {id}.

        A `{parcel}` in the text stands for `parcel`. Orders that were placed before there was HTML
        ask for {order, to, subject, text}.
        """
        asked = dict(call.payload)
        mail, parcel = asked.pop("mail", {}), asked.pop("parcel", "")
        words = {"text": parcel, "html": escape(parcel)}
        filled = {
            name: text.replace(PARCEL, words.get(name, PARCEL))
            for name, text in mail.items()
            if text
        }
        return await self.done(call, "/mail/messages", {**asked, **filled})
