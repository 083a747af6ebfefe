"""The verdict on a drill: how each order ended, by the database and by the partners' ledger.

A good end is: processed, with each effect once; undone, with no effect left; or in error, with an
open alert. Any other order is lost. An order is doubled if a partner has more effects than its steps.
"""

import json
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from drill.flows import ledger as flows
from drill.stack import Stack

# a step's action → its total in the sandbox's summary, and the total of its undo
COUNTED = {
    "reserve": ("reservations", "releases"),
    "book": ("shipments", "shipments_cancelled"),
    "send": ("mails", "mails_recalled"),
}
MONEY = {"authorize": "authorized", "capture": "captured"}

STATES = """
SELECT t.reference, t.state, coalesce(o.status, ''), coalesce(o.total, 0), coalesce(o.refunded, 0),
    coalesce((SELECT sum(amount) FROM orders_removal r WHERE r.order_id = o.id), 0)
FROM orchestration_task t LEFT JOIN orders_order o ON o.id::text = t.reference
WHERE t.reference = ANY(%s)
"""
# of orders, of their parcels, whose references begin with those of their orders, and of tasks about them;
# those that name the order to the partner, whose totals are by order
DONE_STEPS = """
SELECT o.id, s.action, count(*) FROM orchestration_step s
JOIN orchestration_task t ON t.id = s.task_id
CROSS JOIN LATERAL (SELECT coalesce(nullif(t.about_reference, ''), split_part(t.reference, '/', 1)) AS id) o
WHERE o.id = ANY(%s) AND s.direction = 'do' AND s.process_state = 'processed' AND s.done_by = ''
    AND s.request ? 'order'
GROUP BY 1, 2
"""
ALERTED = """
SELECT DISTINCT t.reference FROM orchestration_step s
JOIN orchestration_task t ON t.id = s.task_id JOIN orchestration_alert a ON a.id = s.alert_id
WHERE t.reference = ANY(%s) AND s.process_state = 'error' AND a.closed_at IS NULL
"""


Effects = dict[str, Any]  # one order's totals in the sandbox's summary


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order in the database; `status` is the shop's, `total` is in minor units."""

    state: str = "gone"
    status: str = ""
    total: int = 0
    refunded: int = 0
    removed: int = 0  # by how much it costs less than was authorized, or transferred
    alerted: bool = False


@dataclass(kw_only=True)
class Verdict:
    """Numbers of orders, and a sentence on each trouble."""

    lost: int = 0
    double: int = 0
    troubles: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Return whether there is no trouble at all."""
        return not (self.lost or self.double or self.troubles)

    def __str__(self) -> str:
        return "good" if self.good else "BAD"


def verdict(stack: Stack, orders: Collection[str], ends: str = "processed") -> Verdict:
    """Compare every order with the partners' ledger, and run the auditor; see `Mode.ends`."""
    result = Verdict()
    references = list(orders)
    alerted = {reference for (reference,) in stack.sql(ALERTED, references)}
    rows = {
        reference: Order(
            state=state,
            status=status,
            total=total,
            refunded=refunded,
            removed=removed,
            alerted=reference in alerted,
        )
        for reference, state, status, total, refunded, removed in stack.sql(STATES, references)
    }
    done: dict[str, dict[str, int]] = {}
    for reference, action, count in stack.sql(DONE_STEPS, references):
        done.setdefault(reference, {})[action] = count
    ledger = stack.sandbox("/ledger/summary")
    of_flows = flows.judge(stack, references)
    for reference in dict.fromkeys([*references, *of_flows]):
        order, effects = rows.get(reference, Order()), ledger.get(reference, {})
        steps = done.get(reference, {})
        doubled, bad = of_flows.get(reference) or (
            _doubled(effects, steps, order.total + order.removed),
            _bad_end(order, effects, steps),
        )
        result.double += bool(doubled)
        result.lost += bool(bad)
        if not bad and ends not in ("settled", order.state):
            bad = f"ended {order.state}, not {ends}"
        result.troubles += [f"{reference}: {trouble}" for trouble in (doubled, bad) if trouble]
    result.troubles += audit(stack, references)
    return result


def _doubled(effects: Effects, done: dict[str, int], total: int) -> str:
    """Return the effect that a partner has too often, or an empty string."""
    for action, (effect, opposite) in COUNTED.items():
        stands = effects.get(effect, 0) - effects.get(opposite, 0)
        if stands > max(1, done.get(action, 0)):
            return f"{stands} {effect}"
    for effect in MONEY.values():
        if effects.get(effect, 0) > total:
            return f"{effect} {effects[effect]} of {total}"
    return ""


def _bad_end(order: Order, effects: Effects, done: dict[str, int]) -> str:
    """Return the trouble with an order's end, or an empty string."""
    if order.state == "processed":
        return _badly_processed(order, effects, done)
    if order.state == "undone":
        left = left_over(effects)
        return f"undone, but left over: {left}" if left else ""
    if order.state == "error":
        return "" if order.alerted else "in error without an open alert"
    return f"stuck: {order.state}"


def _badly_processed(order: Order, effects: Effects, done: dict[str, int]) -> str:
    if order.status != "confirmed":
        return f"processed, but the shop shows {order.status!r}"
    missing = [
        effect
        for action, (effect, opposite) in COUNTED.items()
        if effects.get(effect, 0) - effects.get(opposite, 0) < done.get(action, 0)
    ]
    net = effects.get("captured", 0) - effects.get("refunded", 0)
    paid = order.total - order.refunded
    if missing or net != paid:
        return f"processed, but captured {net} of {paid}: {effects}"
    return ""


def left_over(effects: Effects) -> dict[str, int]:
    """Return the remaining effects of an order that should have none."""
    captured = effects.get("captured", 0)
    left = {
        "money": captured - effects.get("refunded", 0),
        # a captured amount is no longer authorized
        "hold": max(0, effects.get("authorized", 0) - captured - effects.get("cancelled", 0)),
        "stock": effects.get("reservations", 0) - effects.get("releases", 0),
        "parcels": effects.get("shipments", 0) - effects.get("shipments_cancelled", 0),
    }
    return {name: count for name, count in left.items() if count}


_known: dict[str, set[str]] = {}  # violations of earlier drills, by the stack's folder


def audit(stack: Stack, orders: Collection[str]) -> list[str]:
    """Run the auditor in the stack; return new violations, and all about `orders`."""
    command = [sys.executable, "manage.py", "audit", "--json"]
    done = stack.run(command, check=False)
    if done.returncode not in (0, 1):
        return [f"the auditor failed ({done.returncode})"]
    known = _known.setdefault(str(stack.folder), set())
    violations = []
    for violation in json.loads(done.stdout)["violations"]:
        text = (
            f"invariant {violation['invariant']}, {violation['reference']}: {violation['problem']}"
        )
        if violation["reference"] in orders or text not in known:
            violations.append(text)
        known.add(text)
    return violations


@contextmanager
def audited(stack: Stack) -> Iterator[Stack]:
    """Run a stack; stop it after an audit, which has to be silent but for what a drill has shown."""
    try:
        yield stack.start()
        if stack.process is not None:  # a test may have stopped it
            violations = audit(stack, ())
            assert not violations, f"{len(violations)} violations: {violations[:5]}"
    finally:
        stack.stop()


def check(stack: Stack, orders: list[str]) -> None:
    """Fail unless each order is processed, once, and nothing else is wrong."""
    result = verdict(stack, orders)
    assert result.good, f"{result.lost} lost, {result.double} doubled: {result.troubles[:5]}"
