"""The mailer: tells customers."""

from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .partner import KeyedAgent
from .shapes import TEXT, record


class Notification(KeyedAgent):
    """Wraps the mail service. What it sent cannot be taken back."""

    name = "notification"
    partner = "mail"
    base_url = settings.MAIL_URL
    # a mail can wait: try for longer than a payment before it becomes somebody's problem
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 8}
    results = {"send": {"id": str}}

    @action(accepts=record(order=TEXT, to=TEXT, subject=TEXT, text=TEXT), returns=record(id=TEXT))
    async def send(self, call: Call) -> dict[str, Any]:
        """Send {order, to, subject, text}; returns {id}."""
        return await self.done(call, "/mail/messages", call.payload)
