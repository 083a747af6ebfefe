"""The agent of a bank, which charges and refunds."""

from orchestration.agents.actions import action
from orchestration.agents.http import HttpAgent


class Bank(HttpAgent):
    name = "bank"
    base_url = "http://127.0.0.1:9"

    @action
    async def charge(self, call):
        """Charge a card."""
        return await self.post(call, "/charges", body=call.payload, expect={"id": str})

    @action
    async def refund(self, call):
        """Return it."""
        return await self.post(call, "/refunds", body=call.payload)
