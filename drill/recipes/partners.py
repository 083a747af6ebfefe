"""Partners that answer late, wrongly, twice, never, or no."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from drill.recipes import Running, recipe
from drill.waiting import let_pass, wait_for

CROWDED = """
SELECT p.agent, p."window", count(s.id) FROM orchestration_policy p
JOIN orchestration_step s ON s.agent = p.agent AND s.process_state = 'processing'
    AND s.locked_by IS NOT NULL
GROUP BY 1, 2 HAVING count(s.id) > p."window"
"""
PENDING = """
SELECT t.reference, t.id FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.name = 'reserve_stock' AND s.process_state = 'pending'
AND s.attempt = 0
"""
REFUSED_IN_DOUBT = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.process_state = 'error' AND s.outcome = 'rejected' AND s.in_doubt
"""
STOPPED = "SELECT reference FROM orchestration_task WHERE reference = ANY(%s) AND state = 'error'"
UNDER_WAY = "SELECT count(*) FROM orchestration_operation WHERE ended_at IS NULL"


@contextmanager
def held(run: Running, agent: str) -> Iterator[None]:
    """Hold an agent."""
    run.stack.python("drill.act", "hold", agent)
    try:
        yield
    finally:
        run.stack.python("drill.act", "release", agent)


def ask_for_undo(run: Running, orders: Sequence[str]) -> None:
    """Ask for the undo of orders, as an operator does; none may be refused."""
    refused = run.stack.python("drill.act", "undo", *orders)
    assert not refused, f"an undo was refused: {refused[:300]}"


def fired(run: Running) -> int:
    """Return how often the script's faults befell somebody."""
    return sum(fault["fired"] for fault in run.stack.sandbox("/faults")["faults"])


@recipe
def partner(run: Running, *, often: float = 0.3, **fault: object) -> Iterator[None]:
    """A scripted fault (see the sandbox's own list) befalls that part of all requests."""
    script = {"partner": "*", "action": "*", "probability": often, **fault}
    run.stack.sandbox("/faults", {"faults": [script]}, "PUT")
    try:
        yield
        wait_for(lambda: fired(run) >= 5, "the fault befalls some requests", 20)
    finally:
        run.stack.sandbox("/faults", method="DELETE")


def watch_windows(run: Running, seconds: float) -> None:
    """See to it that no agent has more requests in flight than its window allows."""
    for _ in range(int(seconds / 0.05)):
        crowded = run.stack.sql(CROWDED)
        assert not crowded, f"a herd: agent, window, in flight: {crowded}"
        let_pass(0.05)


@recipe
def outage(run: Running) -> Iterator[None]:
    """Every partner is down; when they are back, nobody sends more than the windows allow."""
    run.stack.sandbox("/faults", {"faults": [{"partner": "*", "fault": "down"}]}, "PUT")
    try:
        yield
    finally:
        run.stack.sandbox("/faults", method="DELETE")
    watch_windows(run, 2)


@recipe
def refused_in_doubt(run: Running, *, often: float = 0.3) -> Iterator[None]:
    """Calls have their effect in silence, and repeats are refused before the key is looked at.

    Once the partners work, operators resubmit whatever stopped: under the same key, or all is twice.
    """
    faults = [
        {"fault": "timeout_after_effect", "seconds": 20},
        {"fault": "status", "status": 422},
    ]
    everywhere = {"partner": "*", "action": "*", "probability": often}
    script = [{**everywhere, **fault} for fault in faults]
    run.stack.sandbox("/faults", {"faults": script}, "PUT")
    try:
        yield
        wait_for(lambda: run.stack.count(REFUSED_IN_DOUBT, run.orders) >= 3, "some are refused", 30)
    finally:
        run.stack.sandbox("/faults", method="DELETE")
    run.quiet()
    while stopped := [reference for (reference,) in run.stack.sql(STOPPED, run.orders)]:
        run.stack.python("drill.act", "resubmit", *stopped)
        wait_for(lambda: not run.stack.count(UNDER_WAY), "the operation is done", 60, pause=0.2)
        run.quiet()


@recipe
def card_declined(run: Running, *, orders: int = 20) -> Iterator[None]:
    """Some customers pay by a card that the bank declines."""
    run.place(orders, card="pm_card_visa_chargeDeclined")
    yield


@recipe
def out_of_stock(run: Running, *, left: int = 300) -> Iterator[None]:
    """The inventory has too little for all orders; some are refused."""
    stock = dict.fromkeys(run.stack.sandbox("/inventory/stock"), left)
    run.stack.sandbox("/inventory/stock", stock, "PUT")
    try:
        yield
        run.quiet()
        refused = [
            one for one in run.stack.sandbox("/inventory/stock").values() if one["on_hand"] < 2
        ]
        assert refused, "there was enough for all"
    finally:
        run.stack.sandbox("/inventory/stock", dict.fromkeys(stock, 1_000_000), "PUT")


@recipe
def key_reused(run: Running, *, keys: int = 20) -> Iterator[None]:
    """A stranger used the keys of steps before, for something else: the partner refuses theirs.

    What stands under the keys is taken back when the orders are undone.
    """
    with held(run, "inventory"):
        yield
        wait_for(lambda: len(run.stack.sql(PENDING, run.orders)) >= keys, "steps wait", 20)
        product = next(iter(run.stack.sandbox("/inventory/stock")))
        taken = run.stack.sql(PENDING, run.orders)[:keys]
        for order, task in taken:
            lines = [{"sku": product, "quantity": 2}]  # as ordered: the books stay right
            _reserve(run, f"{task}:reserve_stock:do:1", {"order": order, "lines": lines, "by": "x"})
    orders = [order for order, _ in taken]
    wait_for(
        lambda: run.stack.count(REFUSED_IN_DOUBT, orders) == len(orders), "they are refused", 60
    )
    ask_for_undo(run, orders)


def _reserve(run: Running, key: str, body: object) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{run.stack.sandbox_port}/inventory/reservations",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": key},
    )
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=10):  # noqa: S310
        pass
