"""The parcels of orders that have several, as their tasks' status messages say."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from orchestration.api import Progress, Status, StepState, TaskState
from orders.models import Parcel
from orders.models.parcel import Carrier, ParcelState

from .message import PARCEL_WORKFLOW, Line
from .stages import do_steps

BY_COURIER = "create_shipment_by_courier"
STATES = {
    TaskState.PROCESSED: ParcelState.SENT,
    TaskState.ERROR: ParcelState.FAILED,
    TaskState.UNDOING: ParcelState.FAILED,
    TaskState.UNDONE: ParcelState.CANCELLED,
}
# In the order of their keys, so that two receivers cannot deadlock. An order may be gone by now.
APPLY = """
INSERT INTO orders_parcel (order_id, position, warehouse, lines, carrier, tracking, state, number)
SELECT p.* FROM unnest(%(orders)s::uuid[], %(positions)s::int[], %(warehouses)s::text[], %(lines)s::jsonb[],
    %(carriers)s::text[], %(trackings)s::text[], %(states)s::text[], %(numbers)s::int[])
    AS p (order_id, position, warehouse, lines, carrier, tracking, state, number)
JOIN orders_order o ON o.id = p.order_id
ORDER BY p.order_id, p.position
ON CONFLICT (order_id, position) DO UPDATE SET carrier = excluded.carrier, tracking = excluded.tracking,
    state = excluded.state, number = excluded.number
WHERE orders_parcel.number < excluded.number
"""


@dataclass(frozen=True, kw_only=True)
class ShownParcel:
    """A parcel as its customer sees it; `lines` are those of the order, with what is in it."""

    state: ParcelState
    carrier: str
    tracking: str
    lines: Sequence[Line]


def receive(messages: Sequence[Status]) -> None:
    """Apply the latest message about each parcel; older ones change nothing."""
    latest: dict[str, tuple[Status, Progress]] = {}
    for message in sorted(messages, key=lambda message: message.number):
        if message.workflow == PARCEL_WORKFLOW and message.progress:
            latest[message.reference] = (message, message.progress)
    if not latest:
        return
    rows = [_row(*of) for of in latest.values()]
    with connection.cursor() as cursor:
        cursor.execute(APPLY, {name: [row[name] for row in rows] for name in rows[0]})


def _row(message: Status, progress: Progress) -> dict[str, Any]:
    """Return a parcel's values, as APPLY names them, by its task: order/send_parcels/position."""
    order, _, position = message.reference.split("/")
    steps = do_steps(progress)
    booked = next((step for step in steps.values() if step.state is StepState.PROCESSED), None)
    # a step that is not needed has no request
    asked = next(
        step.request for step in steps.values() if isinstance(step.request.get("lines"), list)
    )
    result = (booked.result or {}) if booked else {}
    courier = booked is not None and booked.name == BY_COURIER
    return {
        "orders": order,
        "positions": int(position),
        "warehouses": asked["warehouse"][:60],
        "lines": json.dumps(asked["lines"]),
        "carriers": (Carrier.COURIER if courier else Carrier.SHIPPING).value if booked else "",
        "trackings": str(result.get("tracking", ""))[:60],
        "states": STATES.get(progress.state, ParcelState.PACKING).value,
        "numbers": message.number,
    }


def shown(order: UUID, lines: Iterable[Line]) -> list[ShownParcel]:
    """Return the parcels of an order with these lines (one query)."""
    known = {line.sku: line for line in lines}
    return [
        ShownParcel(
            state=ParcelState(parcel.state),
            carrier=parcel.get_carrier_display(),
            tracking=parcel.tracking,
            lines=[
                Line(
                    sku=line["sku"],
                    name=known[line["sku"]].name if line["sku"] in known else line["sku"],
                    unit_price=0,
                    quantity=line["quantity"],
                )
                for line in parcel.lines
            ],
        )
        for parcel in Parcel.objects.filter(order=order).order_by("position")
    ]
