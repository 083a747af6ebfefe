from django.conf import settings

from orchestration.api import (
    HttpAgent,
    Step,
    Workflow,
    action,
    field,
    first,
    key,
    passed,
    register,
    result,
)


class Carrier(HttpAgent):
    """Refuses some addresses always, so that it need not keep the refusals by their keys."""

    name = "carrier"
    base_url = settings.SANDBOX_URL
    stores_refusals = True

    @action
    async def book(self, call):
        """Book a parcel."""
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})

    @action
    async def take_back(self, call):
        """Cancel a parcel."""
        return await self.post(call, "/bench/undo", body=call.payload, expect={"effect": str})


class Courier(Carrier):
    """Goes everywhere."""

    name = "rider"
    stores_refusals = False


register(Carrier)
register(Courier)


def sort(request):
    """Say whether an order has a parcel."""
    return {"ships": request["to"] != "screen"}


def booked(name, agent, *after, request, **fields):
    return Step(
        name=name, agent=agent, action="book", after=after,
        request={"order": field("to"), **request},
        undo="take_back", undo_request={"key": key(name)}, **fields,
    )  # fmt: skip


register(
    Workflow(
        name="deliver",
        steps=[
            Step(name="sort", compute=sort, request={"to": field("to")}),
            booked(
                "carry", "carrier", "sort",
                request={}, when=result("sort", "ships"), refused={"not_served": "pass"},
            ),
            booked(
                "hand", "rider", "carry", request={}, when=passed("carry", "not_served")
            ),
            booked(
                "letter", "rider", "hand",
                request={"parcel": first(result("carry", "id"), result("hand", "id"), "none")},
            ),
        ],
    )
)  # fmt: skip
