"""Partners that answer late, wrongly, twice or never, or that refuse."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from drill.recipes import Running, recipe
from drill.stack import Stack
from drill.waiting import pause, wait_for

# a third of all requests to every partner fail before they have an effect
FLAKY = {"partner": "*", "action": "*", "fault": "reset", "probability": 0.3}
# Not counted: what was sent before the breaker opened, which may hang and would keep it open; what is past
# its time, which its agent has dropped; what was answered, but not recorded yet.
OVER_WINDOW = """
SELECT p.agent, p."window", count(s.id) FROM orchestration_policy p
JOIN orchestration_gate g ON g.agent = p.agent
JOIN orchestration_step s ON s.agent = p.agent AND s.process_state = 'processing'
    AND s.locked_by IS NOT NULL AND s.dispatched_at >= coalesce(g.opened_at, '-infinity')
    AND s.complete_by > clock_timestamp()
    AND s.id NOT IN (SELECT step FROM orchestration_deadletter WHERE step IS NOT NULL)
GROUP BY 1, 2 HAVING count(s.id) > p."window"
"""
PENDING = """
SELECT t.reference, t.id FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.name = 'reserve_stock' AND s.process_state = 'pending'
AND s.attempt = 0
"""
REJECTED_IN_DOUBT = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.process_state = 'error' AND s.outcome = 'rejected' AND s.in_doubt
"""
IN_ERROR = "SELECT reference FROM orchestration_task WHERE reference = ANY(%s) AND state = 'error'"
UNRECORDED = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s)
AND s.attempt <> (SELECT count(*) FROM orchestration_attempt a WHERE a.step_id = s.id)
"""
REFUSED_REPLIES = "SELECT count(*) FROM orchestration_event WHERE kind = 'refused' AND at > %s"
FLOWING_WINDOW = 100  # calls in flight to each partner: many steps are released and claimed at once
UNHURRIED_S = 60  # time allowed for an attempt
OPERATIONS = "SELECT count(*) FROM orchestration_operation WHERE ended_at IS NULL"


@contextmanager
def scripted(stack: Stack, *faults: dict[str, Any]) -> Iterator[None]:
    """Apply faults in the sandbox (see its own list)."""
    stack.sandbox("/faults", {"faults": faults}, "PUT")
    try:
        yield
    finally:
        stack.sandbox("/faults", method="DELETE")


@contextmanager
def held(run: Running, agent: str) -> Iterator[None]:
    """Hold an agent."""
    run.stack.python("drill.operator", "hold", agent)
    try:
        yield
    finally:
        run.stack.python("drill.operator", "release", agent)


def request_undo(run: Running, orders: Sequence[str]) -> None:
    """Request the undo of orders, as an operator does; fail if one is refused."""
    refused = run.stack.python("drill.operator", "undo", *orders)
    assert not refused, f"an undo was refused: {refused[:300]}"


def fired(run: Running) -> int:
    """Return how often the scripted faults were applied."""
    return sum(fault["fired"] for fault in run.stack.sandbox("/faults")["faults"])


def wait_for_faults(run: Running) -> None:
    """Wait until the scripted faults were applied to some requests."""
    wait_for(lambda: fired(run) >= 5, "the fault is applied to 5 requests", 20)


@recipe
def partner(
    run: Running, *, fault: str, often: float = 0.3, retries: int = 0, **more: object
) -> Iterator[None]:
    """Apply a fault to a share of all requests; it lasts until at least `retries` attempts followed."""
    scope = {"partner": "*", "action": "*", "probability": often}
    with scripted(run.stack, {**scope, "fault": fault, **more}):
        yield
        wait_for_faults(run)
        wait_for(lambda: run.retries() >= retries, f"{retries} attempts followed", 60)


def watch_windows(run: Running, seconds: float) -> None:
    """Fail if an agent has more requests in flight than its window allows."""
    for _ in range(int(seconds / 0.05)):
        over = run.stack.sql(OVER_WINDOW)
        assert not over, f"agent, window, in flight: {over}"
        pause(0.05)


@recipe
def outage(run: Running) -> Iterator[None]:
    """Take every partner down; once they are back, no agent exceeds its window."""
    with scripted(run.stack, {"partner": "*", "fault": "down"}):
        yield
    watch_windows(run, 2)


@recipe
def refused_in_doubt(run: Running, *, often: float = 0.3) -> Iterator[None]:
    """Calls take effect without an answer; repeats are refused before the key is checked.

    Once the partners work, operators resubmit all failed steps: under the same key, since a new key
    would repeat the effect.
    """
    common = {"partner": "*", "action": "*", "probability": often}
    silent = {**common, "fault": "timeout_after_effect", "seconds": 20}
    with scripted(run.stack, silent, {**common, "fault": "status", "status": 422}):
        yield
        rejected = REJECTED_IN_DOUBT
        wait_for(lambda: run.stack.count(rejected, run.orders) >= 3, "3 steps are rejected", 30)
    run.quiet()
    while failed := [reference for (reference,) in run.stack.sql(IN_ERROR, run.orders)]:
        run.stack.python("drill.operator", "resubmit", *failed)
        wait_for(lambda: not run.stack.count(OPERATIONS), "the operation has ended", 60, pause=0.2)
        run.quiet()


@recipe
def refusals(run: Running, *, orders: int = 3000, share: float = 0.2) -> Iterator[None]:
    """A partner refuses a share of the orders; nothing else fails, and several schedulers are at work.

    Each refusal raises an alert while others claim. Then no attempt may lack its history, and no reply may
    be refused: a step that was dispatched twice at the same time shows as either.
    """
    stack = run.stack
    ((window, time_allowed),) = stack.sql(
        'SELECT max("window"), max(time_allowed) FROM orchestration_policy'
    )
    ((since,),) = stack.sql("SELECT clock_timestamp()")
    # a busy machine may take longer than the time that drills allow: that would be another fault
    stack.policy(window=FLOWING_WINDOW, time_allowed=UNHURRIED_S)
    refusing = {"partner": "shipping", "action": "book", "fault": "reject", "probability": share}
    try:
        with scripted(stack, refusing):
            run.place(orders)
            yield
            run.quiet()
    finally:
        stack.policy(window=window, time_allowed=time_allowed)
    ended_in_error = len(stack.sql(IN_ERROR, run.orders))
    assert ended_in_error > orders * share / 2, f"only {ended_in_error} orders were refused"
    unrecorded = stack.count(UNRECORDED, run.orders)
    assert not unrecorded, f"{unrecorded} steps have attempts without history"
    refused = stack.count(REFUSED_REPLIES, since)
    assert not refused, f"{refused} replies were refused"


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
        levels = run.stack.sandbox("/inventory/stock").values()
        assert any(level["on_hand"] < 2 for level in levels), "the stock sufficed for all orders"
    finally:
        run.stack.sandbox("/inventory/stock", dict.fromkeys(stock, 1_000_000), "PUT")


@recipe
def key_reused(run: Running, *, keys: int = 20) -> Iterator[None]:
    """Another client used the keys of waiting steps for other payloads: the partner refuses them.

    The undo of the orders takes back what was done under these keys.
    """
    with held(run, "inventory"):
        yield
        wait_for(lambda: len(run.stack.sql(PENDING, run.orders)) >= keys, "steps wait", 20)
        product = next(iter(run.stack.sandbox("/inventory/stock")))
        taken = run.stack.sql(PENDING, run.orders)[:keys]
        for order, task in taken:
            lines = [{"sku": product, "quantity": 2}]  # as ordered, so that the stock stays right
            _reserve(run, f"{task}:reserve_stock:do:1", {"order": order, "lines": lines, "by": "x"})
    orders = [order for order, _ in taken]
    rejected = REJECTED_IN_DOUBT
    wait_for(lambda: run.stack.count(rejected, orders) == len(orders), "all are rejected", 60)
    request_undo(run, orders)


def _reserve(run: Running, key: str, body: object) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{run.stack.sandbox_port}/inventory/reservations",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": key},
    )
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=10):  # noqa: S310
        pass
