"""Corrections of the stock, while the inventory's answers get lost."""

from collections.abc import Iterator

from drill.recipes import Running, recipe
from drill.recipes.partners import scripted, wait_for_faults
from drill.waiting import wait_for

CORRECTIONS = 20
RECEIVED = 3  # units each
MADE = "SELECT count(*) FROM orders_stockcorrection WHERE state = 'made' AND change = %s"


@recipe
def corrections(run: Running, **fault: object) -> Iterator[None]:
    """Have goods come in, and orders be placed, while the answers about the goods have a fault."""
    before = run.stack.sandbox("/inventory/stock")
    product = min(before)
    run.place(10)
    with scripted(run.stack, {"partner": "inventory", "action": "adjust", **fault}):
        run.stack.python(
            "drill.operator", "receive_goods", product, str(CORRECTIONS), str(RECEIVED)
        )
        yield
        wait_for_faults(run)
        wait_for(
            lambda: run.stack.count(MADE, RECEIVED) == CORRECTIONS, "all corrections are made", 90
        )
    after = run.stack.sandbox("/inventory/stock")[product]
    came = after["start"] - before[product]["start"]
    assert came == CORRECTIONS * RECEIVED, (
        f"{came} units came in instead of {CORRECTIONS * RECEIVED}"
    )
