from django.conf import settings

from orchestration.api import (
    HttpAgent,
    Later,
    Step,
    Workflow,
    action,
    done,
    key,
    not_,
    passed,
    register,
    result,
)


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


register(Bank)
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
