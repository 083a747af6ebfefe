"""The verdict on a mode: what became of each of its orders, by the records and by the ledgers.

An order came to a good end if it is processed and the partners did each thing once, or undone with
nothing left of it, or in error with an open alert. It is lost if it is none of these, and doubled
if a partner did something more often than a step records it.
"""

import json
import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from drill.stack import Stack

# A step's action → the total of the sandbox's summary that it counts toward, and its opposite.
COUNTED = {
    "reserve": ("reservations", "releases"),
    "book": ("shipments", "shipments_cancelled"),
    "send": ("mails", "mails_recalled"),
}
MONEY = {"authorize": "authorized", "capture": "captured"}

STATES = """
SELECT t.reference, t.state, coalesce(o.status, ''), coalesce(o.total, 0)
FROM orchestration_task t LEFT JOIN orders_order o ON o.id::text = t.reference
WHERE t.reference = ANY(%s)
"""
DONE_STEPS = """
SELECT t.reference, s.action, count(*) FROM orchestration_step s
JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.direction = 'do' AND s.process_state = 'processed'
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
    """How an order stands in the records; `total` in minor units."""

    state: str = "gone"
    told: str = ""
    total: int = 0
    alerted: bool = False


@dataclass(kw_only=True)
class Verdict:
    """What was found: numbers of orders, and each trouble in words."""

    lost: int = 0
    double: int = 0
    troubles: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Say whether nothing at all was found."""
        return not (self.lost or self.double or self.troubles)

    def __str__(self) -> str:
        return "good" if self.good else "BAD"


def verdict(stack: Stack, orders: Collection[str], ends: str = "processed") -> Verdict:
    """Compare every order with the partners' ledger and the auditor's findings; see `Mode.ends`."""
    found = Verdict()
    wanted = list(orders)
    alerted = {reference for (reference,) in stack.sql(ALERTED, wanted)}
    rows = {
        reference: Order(state=state, told=told, total=total, alerted=reference in alerted)
        for reference, state, told, total in stack.sql(STATES, wanted)
    }
    done: dict[str, dict[str, int]] = {}
    for reference, action, count in stack.sql(DONE_STEPS, wanted):
        done.setdefault(reference, {})[action] = count
    ledger = stack.sandbox("/ledger/summary")
    for reference in wanted:
        order, effects = rows.get(reference, Order()), ledger.get(reference, {})
        steps = done.get(reference, {})
        doubled, bad = _doubled(effects, steps, order.total), _bad_end(order, effects, steps)
        found.double += bool(doubled)
        found.lost += bool(bad)
        if not bad and ends not in ("settled", order.state):
            bad = f"ended {order.state}, not {ends}"
        found.troubles += [f"{reference}: {trouble}" for trouble in (doubled, bad) if trouble]
    found.troubles += audit(stack, wanted)
    return found


def _doubled(effects: Effects, done: dict[str, int], total: int) -> str:
    """Say what a partner did more often than it should have; empty if nothing."""
    for action, (effect, opposite) in COUNTED.items():
        stands = effects.get(effect, 0) - effects.get(opposite, 0)
        if stands > max(1, done.get(action, 0)):
            return f"{stands} {effect}"
    for effect in MONEY.values():
        if effects.get(effect, 0) > total:
            return f"{effect} {effects[effect]} of {total}"
    return ""


def _bad_end(order: Order, effects: Effects, done: dict[str, int]) -> str:
    """Say what is wrong with an order's end; empty if it is a good one."""
    if order.state == "processed":
        return _badly_processed(order, effects, done)
    if order.state == "undone":
        return _badly_undone(effects)
    if order.state == "error":
        return "" if order.alerted else "in error, and no open alert says so"
    return f"stuck: {order.state}"


def _badly_processed(order: Order, effects: Effects, done: dict[str, int]) -> str:
    if order.told != "confirmed":
        return f"processed, but the shop was told {order.told!r}"
    missing = [
        effect
        for action, (effect, opposite) in COUNTED.items()
        if effects.get(effect, 0) - effects.get(opposite, 0) < done.get(action, 0)
    ]
    net = effects.get("captured", 0) - effects.get("refunded", 0)
    if missing or net != order.total:
        return f"processed, but captured {net} of {order.total}: {effects}"
    return ""


def _badly_undone(effects: Effects) -> str:
    captured = effects.get("captured", 0)
    left = {
        "money": captured - effects.get("refunded", 0),
        # what was captured is no longer held
        "hold": max(0, effects.get("authorized", 0) - captured - effects.get("cancelled", 0)),
        "stock": effects.get("reservations", 0) - effects.get("releases", 0),
        "parcels": effects.get("shipments", 0) - effects.get("shipments_cancelled", 0),
    }
    return f"undone, but there is left: {left}" if any(left.values()) else ""


_known: dict[str, set[str]] = {}  # what was found in a stack before: it counts once


def audit(stack: Stack, orders: Collection[str]) -> list[str]:
    """Run the auditor inside the stack; return what it finds about `orders`, or finds anew."""
    if not stack.audits:
        return []
    command = [sys.executable, "manage.py", "audit", "--json"]
    done = stack.run(command, check=False)
    if done.returncode not in (0, 1):
        return [f"the auditor failed ({done.returncode})"]
    known = _known.setdefault(str(stack.folder), set())
    found = []
    for one in json.loads(done.stdout)["violations"]:
        text = f"invariant {one['invariant']}, {one['reference']}: {one['trouble']}"
        if one["reference"] in orders or text not in known:
            found.append(text)
        known.add(text)
    return found


def check(stack: Stack, orders: list[str]) -> None:
    """Fail unless each order is processed, once, and nothing else is wrong."""
    found = verdict(stack, orders)
    assert found.good, f"{found.lost} lost, {found.double} doubled: {found.troubles[:5]}"
