"""The mailer: tells customers."""

from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .partner import PartnerAgent


class Notification(PartnerAgent):
    """Wraps the mail service."""

    name = "notification"
    base_url = settings.MAIL_URL
    # a mail can wait: try for longer than a payment before it becomes somebody's problem
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 8}

    @action
    async def send(self, call: Call) -> dict[str, Any]:
        """Send {order, to, subject, text}; returns {id}."""
        answer = await self.post(call, "/mail/messages", body=call.payload, expect={"id": str})
        return {"id": answer["id"]}
