"""Orders in several parcels, or by the courier, and the carriers' faults."""

from collections.abc import Iterator
from typing import Any

from drill.recipes import Running, recipe
from drill.recipes.partners import request_undo, scripted, wait_for_faults
from drill.waiting import wait_for

ORDERS = 30
PLENTY = 10_000_000
BOOKED = "SELECT count(*) FROM orders_parcel WHERE order_id = ANY(%s::uuid[]) AND state = %s"
# Hours are seconds here: of steps that have not ended, as their workflows have stored it with them.
SOON = """
UPDATE orchestration_step SET flow = jsonb_set(flow, '{away_after}', '3')
WHERE agent = 'shipping' AND flow ? 'away_after' AND process_state IN ('waiting', 'pending', 'processing')
RETURNING id
"""
BY_COURIER = """
SELECT count(*) FROM orders_parcel
WHERE order_id = ANY(%s::uuid[]) AND carrier = 'courier' AND state = 'sent'
"""


@recipe
def parcels(
    run: Running, *, faults: list[dict[str, Any]], country: str = "", undo: bool = False
) -> Iterator[None]:
    """Place orders of goods in two warehouses, while the carriers have faults."""
    _, second, *_ = sorted(run.stack.sandbox("/inventory/stock"))
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


@recipe
def carrier_away(run: Running) -> Iterator[None]:
    """The usual carrier is away: the courier takes what waits, and the carrier the rest once it is back."""
    with scripted(run.stack, {"partner": "shipping", "fault": "down"}):
        run.place(ORDERS)
        yield

        def taken() -> bool:
            run.stack.sql(SOON)
            return run.stack.count(BY_COURIER, run.orders) >= ORDERS

        wait_for(taken, f"the courier takes {ORDERS} parcels", 90, pause=1.0)
    run.quiet()
