"""The partners' agents on a real sandbox: each call is an attempt, validated by the action's schemas."""

import time
from uuid import uuid4

from jsonschema import Draft202012Validator

from orchestration.messaging.messages import Request
from orders.agents.inventory import Inventory
from orders.agents.notification import Notification
from orders.agents.payment import Payment
from orders.agents.shipping import Courier, Shipping

LINES = [{"sku": "mug", "name": "Mug", "unit_price": 950, "quantity": 2}]
ADDRESS = {"name": "A", "street": "Elm 1", "postcode": "1", "city": "B", "country": "DE"}
CHARGE = {"order": "o-1", "amount": 1900, "currency": "EUR", "payment_method": "pm_card_visa"}
MAIL = {"order": "o-1", "to": "a@b.example", "subject": "Thanks", "text": "It is on its way."}
AGENTS = {agent.name: agent for agent in (Inventory, Payment, Shipping, Courier, Notification)}


class Shop:
    """The agents of one order; each call is an attempt, validated by the action's schemas."""

    def __init__(self, client):
        self.client = client

    async def do(self, agent, action, payload, *, key="", mode="do", tries=1, seconds=30, **others):
        declared = AGENTS[agent].actions()[action]
        Draft202012Validator(declared.accepts).validate(payload)
        partner_agent = AGENTS[agent]("agent-1")
        partner_agent.base_url = str(self.client.session._base_url).rstrip("/")
        request = Request(
            step=1,
            task=uuid4(),
            name="step",
            attempt=1,
            action=action,
            key=key or uuid4().hex,
            reference="o-1",
            complete_by=time.time() + 60,
            call_timeout=seconds,
            tries=tries,
            payload=payload,
            mode=mode,
            **others,
        )
        try:
            reply = await partner_agent.answer(request)
        finally:
            await partner_agent.close()
        if reply.outcome == "done":
            Draft202012Validator(declared.returns).validate(reply.result)
        return reply

    async def done(self, *args, **others):
        reply = await self.do(*args, **others)
        assert reply.outcome == "done", reply
        return reply.result

    async def reserved(self, key="k-r"):
        await self.client.stocked()
        order = {"order": "o-1", "lines": LINES}
        return (await self.done("inventory", "reserve", order, key=key))["id"]

    async def booked(self, key="k-s"):
        payload = {"order": "o-1", "reservation": await self.reserved(), "address": ADDRESS}
        return await self.done("shipping", "book", payload, key=key)

    async def authorized(self, key="k-p"):
        return (await self.done("payment", "authorize", CHARGE, key=key))["id"]

    async def captured(self, key="k-c"):
        payment = await self.authorized()
        await self.done("payment", "capture", {"payment": payment, "amount": 1900}, key=key)
        return payment

    async def totals(self):
        return (await self.client.get("/ledger/summary"))["o-1"]
