from django.conf import settings

from orchestration.api import HttpAgent, Step, Workflow, action, field, item, key, register, result


class Carrier(HttpAgent):
    """Books parcels."""

    name = "carrier"
    base_url = settings.SANDBOX_URL

    @action
    async def book(self, call):
        """Book a parcel."""
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})

    @action
    async def take_back(self, call):
        """Cancel a parcel."""
        return await self.post(call, "/bench/undo", body=call.payload, expect={"effect": str})


register(Carrier)


def booked(name, *after, **request):
    return Step(
        name=name, agent="carrier", action="book", after=after, request={"order": "order", **request},
        undo="take_back", undo_request={"key": key(name)},
    )  # fmt: skip


register(
    Workflow(
        name="split",
        steps=[
            booked("first"),
            Step(
                name="parcels", workflow="parcel", each=field("parcels"), request={"number": item()},
                after=["first"], refused={"child_undone": "pass"},
            ),
            booked("last", "parcels", parcels=result("parcels", "items")),
        ],
    )
)  # fmt: skip
register(
    Workflow(
        name="parcel",
        steps=[booked("pack", number=field("number")), booked("send", "pack")],
        result={"number": field("number"), "id": result("send", "id")},
    )
)
