from django.conf import settings

from orchestration.api import (
    HttpAgent,
    Later,
    Reported,
    Step,
    Workflow,
    action,
    done,
    field,
    key,
    not_,
    passed,
    register,
    result,
)

SECRET = "whsec_YSBzZWNyZXQgb2YgYSB0ZXN0"


class Bank(HttpAgent):
    """Accepts each charge, which a customer has to confirm; it can be asked about none."""

    name = "bank"
    base_url = settings.SANDBOX_URL

    @action
    async def charge(self, call):
        """Begin a charge."""
        charge = await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})
        raise Later(accepted=charge, id=charge["id"])

    @action
    async def refund(self, call):
        """Take a charge back."""
        return await self.post(call, "/bench/undo", body=call.payload, expect={"effect": str})


class Cards(Bank):
    """Accepts each charge under an id that its partner knows before, and hears by webhooks how it ends."""

    name = "cards"

    @action
    async def begin(self, call):
        """Begin a charge."""
        charge = await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})
        raise Later(accepted=charge, id=call.reference)

    @classmethod
    def receive(cls, webhook):
        """Report how a charge has ended."""
        webhook.verify(SECRET)
        event = webhook.json()
        if event["says"] == "paid":
            yield Reported(id=event["id"], of=event["charge"], result={"id": event["charge"]})
        else:
            yield Reported(id=event["id"], of=event["charge"], refused=event["says"])


register(Bank)
register(Cards)
register(
    Workflow(
        name="by_card",
        steps=[
            Step(
                name="pay", agent="cards", action="begin", ends_within=field("within"), late="undo",
                refused={"declined": "undo"}, undo="refund", undo_request={"key": key("pay")},
            ),
        ],
    )
)  # fmt: skip
register(
    Workflow(
        name="confirm",
        steps=[
            Step(
                name="pay", agent="bank", action="charge", ends_within=600.0,
                undo="refund", undo_request={"key": key("pay")},
            ),
            Step(name="review", person="fraud", after=["pay"], ends_within=3.0, late="pass"),
            Step(
                name="goods", signal="goods_arrived", after=["review"], ends_within=600.0, not_before=2.0
            ),
            Step(
                name="note", compute=dict, after=["goods"], request={"paid": result("pay", "id")},
                not_before=1.0,
            ),
            Step(
                name="remind", compute=dict, after=["review"], not_before=1.0,
                when=passed("review", "late"),
            ),
            Step(name="later", compute=dict, not_before=5.0, when=not_(done("pay"))),
        ],
    )
)  # fmt: skip
