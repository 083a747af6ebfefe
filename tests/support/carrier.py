"""A carrier, whose actions are scripted or never called."""

from orchestration import api


class Carrier(api.HttpAgent):
    name = "carrier"
    base_url = "http://127.0.0.1:9"

    @api.action
    async def book(self, call):
        """Book a parcel."""
        return await self.post(call, "/book", body=call.payload, expect={"id": str})

    @api.action
    async def cancel(self, call):
        """Cancel a parcel."""
        return await self.post(call, "/cancel", body=call.payload)
