"""Orders in several parcels: the plan, once their goods are reserved, and the workflow of each parcel."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from django.conf import settings

from orchestration.api import Step, Workflow, done, field, first, key, loaded, not_, result

from .agents.shipping import REFUSED
from .lifecycle.fewer import beside
from .lifecycle.loading import load_for_parcels
from .lifecycle.message import APPLICATION, PARCEL_WORKFLOW
from .lifecycle.numbers import number
from .lifecycle.parcels import BY_COURIER

USUAL = "create_shipment"


class Reserved(TypedDict):
    """Pieces of one SKU that are reserved in a warehouse."""

    sku: str
    quantity: int
    warehouse: str


class Parcel(TypedDict):
    """A parcel to be sent: all of the reservation that is in its warehouse; "" means everywhere.

    `by_courier`: the usual carrier does not go to the address, or is away. `only`: these lines, where
    something was removed from the order.
    """

    warehouse: str
    lines: list[dict[str, Any]]
    by_courier: bool
    only: NotRequired[list[dict[str, Any]]]


def plan(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return {parcels: [...]} for {reserved, lines, emailed, refused, parts}: one from each warehouse.

    The `lines` of the order that are not `reserved` anywhere, as they are made to order, are in the first,
    but for the SKUs that are `emailed`. Where nothing is reserved by warehouse, that is the only one.
    The `parts` were removed from the order since.
    """
    parts = request.get("parts", [])  # requests of former releases lack it
    known = {line["sku"] for line in request["reserved"]} | {*request["emailed"]}
    reserved: Sequence[Reserved] = beside(request["reserved"], parts)
    first = reserved[0]["warehouse"] if reserved else ""
    others = [
        Reserved(sku=line["sku"], quantity=line["quantity"], warehouse=first)
        for line in request["lines"]
        if line["sku"] not in known
    ]
    parcels: dict[str, Parcel] = {}
    for line in [*reserved, *others]:
        there = line["warehouse"]
        new = Parcel(warehouse=there, lines=[], by_courier=request["refused"])
        parcels.setdefault(there, new)["lines"].append(
            {"sku": line["sku"], "quantity": line["quantity"]}
        )
    for parcel in parcels.values() if parts else ():
        parcel["only"] = parcel["lines"]
    return {"parcels": list(parcels.values())}


def _booked(name: str, agent: str, **more: Any) -> Step:
    """Return the step in which a carrier takes the parcel."""
    return Step(
        name=name,
        agent=agent,
        action="book",
        request={
            "order": field("order"),
            "reservation": field("reservation"),
            "warehouse": field("warehouse"),
            "lines": field("lines"),
            "only": field("only", default=None),
            "address": loaded("address"),
        },
        undo="cancel",
        undo_request={"key": key(name)},
        **more,
    )


send_parcel = Workflow(
    name=PARCEL_WORKFLOW,
    load=load_for_parcels,
    owner_application=APPLICATION,
    label=number,
    not_by_hand="A parcel belongs to an order, which makes it.",
    background=True,
    result={"tracking": first(result(USUAL, "tracking"), result(BY_COURIER, "tracking"))},
    steps=[
        _booked(
            USUAL,
            "shipping",
            when=not_(field("by_courier")),
            refused=REFUSED,
            away_after=settings.CARRIER_AWAY_AFTER,
        ),
        _booked(BY_COURIER, "courier", after=[USUAL], when=not_(done(USUAL))),
    ],
)
