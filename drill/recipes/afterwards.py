"""What comes after an order, refunds, returns and exchanges, while the partners' answers get lost."""

from collections.abc import Iterator

from drill.recipes import Running, recipe
from drill.recipes.partners import scripted, wait_for_faults
from drill.waiting import wait_for

ORDERS = 30
PAID = "SELECT count(*) FROM orders_refund WHERE order_id = ANY(%s::uuid[]) AND state = 'paid'"
AT_WORK = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.about_reference = ANY(%s) AND s.process_state IN ('pending', 'processing')
"""
LABELLED = "SELECT count(*) FROM orders_return WHERE order_id = ANY(%s::uuid[]) AND label <> ''"

SENT = """
SELECT count(*) FROM orders_exchange x JOIN orders_order o ON o.id = x.order
WHERE x.payer_id = ANY(%s::uuid[]) AND o.status = 'confirmed'
"""


@recipe
def refunds(run: Running, **fault: object) -> Iterator[None]:
    """Pay parts of completed orders back, while the provider has a fault."""
    known = run.place(ORDERS)
    run.quiet()
    with scripted(run.stack, {"partner": "payment", "action": "refund", **fault}):
        run.stack.python("drill.operator", "refund", *known)
        yield
        wait_for_faults(run)
        wait_for(lambda: run.stack.count(PAID, known) == ORDERS, "all is paid back", 90)


@recipe
def returns(run: Running, **fault: object) -> Iterator[None]:
    """Have customers send goods back, while the carrier's answers about their labels have a fault."""
    known = run.place(ORDERS)
    run.quiet()
    with scripted(run.stack, {"partner": "shipping", "action": "label", **fault}):
        run.stack.python("drill.operator", "send_back", *known)
        yield
        wait_for_faults(run)
        wait_for(lambda: run.stack.count(LABELLED, known) == ORDERS, "all have a label", 90)
        wait_for(lambda: run.stack.count(AT_WORK, known) == 0, "their letters are sent", 90)
    made = run.stack.sandbox("/ledger/summary")
    labels = {made[order]["labels"] - made[order]["labels_void"] for order in known}
    assert labels == {1}, f"returns have {labels} labels"


@recipe
def exchanges(run: Running, **fault: object) -> Iterator[None]:
    """Have customers exchange goods, while the inventory's answers about the replacements have a fault."""
    known = run.place(ORDERS)
    run.quiet()
    with scripted(run.stack, {"partner": "inventory", "action": "reserve", **fault}):
        run.stack.python("drill.operator", "exchange", *known)
        yield
        wait_for_faults(run)
        wait_for(lambda: run.stack.count(SENT, known) == ORDERS, "all replacements are sent", 120)
        wait_for(lambda: run.stack.count(AT_WORK, known) == 0, "the returns have ended", 90)
