"""Orders in several parcels, or by the courier, and the carriers' faults."""

from collections.abc import Iterator
from typing import Any

from drill.recipes import Running, recipe
from drill.recipes.partners import request_undo, scripted, wait_for_faults

ORDERS = 30
PLENTY = 10_000_000
BOOKED = "SELECT count(*) FROM orders_parcel WHERE order_id = ANY(%s::uuid[]) AND state = %s"


@recipe
def parcels(
    run: Running, *, faults: list[dict[str, Any]], country: str = "", undo: bool = False
) -> Iterator[None]:
    """Place orders of goods in two warehouses, while the carriers have faults."""
    first, second, *_ = sorted(run.stack.sandbox("/inventory/stock"))
    run.stack.sandbox("/inventory/stock", {second: {"south": PLENTY}}, "PUT")
    try:
        with scripted(run.stack, *faults):
            split = run.place(ORDERS, also=second, country=country)
            if undo:
                request_undo(run, split)
            yield
            wait_for_faults(run)
            run.quiet()
        sent = run.stack.count(BOOKED, split, "cancelled" if undo else "sent")
        assert undo or sent == 2 * ORDERS, f"{sent} parcels of {2 * ORDERS} were sent"
    finally:
        run.stack.sandbox("/inventory/stock", {second: PLENTY}, "PUT")
