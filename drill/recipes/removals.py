"""Units that customers remove from their orders, while the inventory's answers get lost or it hears late."""

from collections.abc import Iterator

from drill.recipes import Running, recipe
from drill.recipes.afterwards import AT_WORK, ORDERS
from drill.recipes.partners import held, scripted, wait_for_faults
from drill.waiting import wait_for

ASKS, TRANSFER = "pm_card_threeDSecure2Required", "customer_balance"
# by the message that follows some seconds after the payment began to wait
SET_ASIDE = """
SELECT count(*) FROM orders_order WHERE id = ANY(%s::uuid[])
    AND snapshot->'steps' @> '[{"name": "reserve_stock", "state": "processed"}]'
    AND snapshot->'steps' @> '[{"name": "authorize_payment", "state": "awaiting"}]'
"""
REMOVED = "SELECT count(*) FROM orders_removal WHERE order_id = ANY(%s::uuid[])"
RETURNED = """
SELECT count(*) FROM orders_refund WHERE order_id = ANY(%s::uuid[]) AND overpaid AND state = 'paid'
"""


@recipe
def removals(run: Running, **fault: object) -> Iterator[None]:
    """Have customers remove a unit before they confirm their payments, while the inventory has a fault."""
    known = _waiting(run, ASKS)
    with scripted(run.stack, {"partner": "inventory", "action": "release_part", **fault}):
        _remove(run, known)
        yield
        wait_for_faults(run)
        run.stack.python("drill.operator", "confirm", *known)
        run.quiet()
    _released_once(run, known)


@recipe
def late_removals(run: Running) -> Iterator[None]:
    """Have customers remove a unit and pay, and the inventory release it after their parcels are booked."""
    known = _waiting(run, TRANSFER)
    with held(run, "inventory"):
        _remove(run, known)
        yield
        run.stack.python("drill.operator", "confirm", *known)
        run.quiet()
        made = run.stack.sandbox("/ledger/summary")
        booked = {(made[order]["shipments"], made[order]["parts_released"]) for order in known}
        assert booked == {(1, 0)}, f"parcels and parts released too early: {booked}"
    _released_once(run, known)
    wait_for(
        lambda: run.stack.count(RETURNED, known) == ORDERS, "what is too much is paid back", 90
    )


def _waiting(run: Running, card: str) -> list[str]:
    """Place orders whose payments wait for their customers, with their goods reserved; return their ids."""
    known = run.place(ORDERS, card=card)
    wait_for(lambda: run.stack.count(SET_ASIDE, known) == ORDERS, "all goods are reserved", 60)
    return known


def _remove(run: Running, known: list[str]) -> None:
    run.stack.python("drill.operator", "remove", *known)
    wait_for(lambda: run.stack.count(REMOVED, known) == ORDERS, "all units are removed", 60)


def _released_once(run: Running, known: list[str]) -> None:
    wait_for(lambda: run.stack.count(AT_WORK, known) == 0, "all is released and written", 90)
    made = run.stack.sandbox("/ledger/summary")
    released = {made[order]["parts_released"] for order in known}
    assert released == {1}, f"removals were released {released} times"
