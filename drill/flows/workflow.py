"""The workflows of the drills: one partner does everything, so that its ledger shows the order of effects.

A charge ends by the partner's webhook, or by its answer when it is asked. What the customer does is an entry
of its ledger, too (`end_of`); only of some charges there is one.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.conf import settings

from drill.flows import WAIT_S
from orchestration.api import (
    Call,
    HttpAgent,
    Later,
    Rejected,
    Reported,
    Step,
    Webhook,
    Workflow,
    action,
    field,
    item,
    key,
    register,
    result,
)

SECRET = "whsec_YSBzZWNyZXQgb2YgYSBkcmlsbA=="  # noqa: S105 - of a partner in this process
PAID, DECLINED = "paid", "declined"
LOOK_S = 2.0  # between two questions to the partner


def end_of(charge: str, how: str) -> str:
    """Return the key of the partner's entry that says how a charge has ended."""
    return f"end:{charge}:{how}"


class Bench(HttpAgent):
    """The sandbox's partner that accepts any call."""

    name = "bench"
    base_url = settings.SANDBOX_URL

    @action
    async def charge(self, call: Call) -> dict[str, Any]:
        """Begin a charge, which a customer has to confirm."""
        raise Later(accepted=await self.book(call), id=call.reference, look=LOOK_S)

    @action
    async def book(self, call: Call) -> dict[str, Any]:
        """Do anything."""
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})

    @action
    async def take_back(self, call: Call) -> dict[str, Any]:
        """Void what was done under a key."""
        return await self.post(call, "/bench/undo", body=call.payload, expect={"effect": str})

    async def ask(self, call: Call) -> dict[str, Any] | None:
        """Return what was done under the call's key; of a charge how it has ended, if it has."""
        known = await self._known(call, call.key)
        if known is None or call.action != "charge":
            return known
        if await self._known(call, end_of(call.reference, PAID)):
            return known
        if await self._known(call, end_of(call.reference, DECLINED)):
            raise Rejected(DECLINED, "the customer has declined")
        raise Later(accepted=known, id=call.reference, look=LOOK_S)

    async def _known(self, call: Call, name: str) -> dict[str, Any] | None:
        path = f"/keys/{quote(name, safe='')}?partner=bench"
        known = await self.get(call, path, expect={"response": dict})
        return None if known is None else dict(known["response"])

    def knows_nothing(self, status: int, answer: Mapping[str, Any]) -> bool:
        """Return whether the answer means that nothing was done under a key."""
        error = answer.get("error")
        return status == 404 and isinstance(error, Mapping) and error.get("code") == "unknown_key"

    @classmethod
    def receive(cls, webhook: Webhook) -> list[Reported]:
        """Report how a charge has ended."""
        webhook.verify(SECRET)
        event = webhook.json()
        ends: dict[str, Any] = {"refused": DECLINED}
        if event["says"] == PAID:
            ends = {"result": {"id": event["charge"]}}
        return [Reported(id=event["id"], of=event["charge"], **ends)]


def booked(name: str, *after: str, **request: Any) -> Step:
    """Return a step that the partner does."""
    return Step(
        name=name, agent=Bench, action=Bench.book, after=after, request={"step": name, **request},
        undo=Bench.take_back, undo_request={"key": key(name)},
    )  # fmt: skip


register(Bench)
register(
    Workflow(
        name="drill_charge",
        steps=[
            Step(
                name="pay", agent=Bench, action=Bench.charge, request={"order": field("order")},
                ends_within=field("within"), late="undo", refused={DECLINED: "undo"},
                undo=Bench.take_back, undo_request={"key": key("pay")},
            ),
            booked("ship", "pay", paid=result("pay", "id")),
        ],
    )
)  # fmt: skip
register(
    Workflow(
        name="drill_split",
        steps=[
            booked("first"),
            Step(
                name="parcels", workflow="drill_parcel", each=field("parcels"),
                request={"number": item()}, after=["first"],
            ),
            booked("last", "parcels", parcels=result("parcels", "items")),
        ],
    )
)  # fmt: skip
register(
    Workflow(
        name="drill_parcel",
        steps=[booked("pack", number=field("number")), booked("send", "pack")],
        result={"number": field("number"), "id": result("send", "id")},
    )
)
register(
    Workflow(
        name="drill_timed",
        steps=[
            booked("begun"),
            Step(name="never", signal="never", after=["begun"], ends_within=WAIT_S, late="pass"),
            booked("late", "never"),
            Step(
                name="timed", agent=Bench, action=Bench.book, after=["late"], not_before=WAIT_S,
                request={"step": "timed"}, undo=Bench.take_back, undo_request={"key": key("timed")},
            ),
        ],
    )
)  # fmt: skip
register(Workflow(name="drill_report", steps=[booked("report")]))
