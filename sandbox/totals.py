"""Totals per order, as an auditor compares them with the orders' states."""

from collections.abc import Iterable

from sandbox.partner import Entry, Json

# partner and effect → the total it counts toward; money totals add amounts in minor units.
MONEY = {
    ("payment", "authorize"): "authorized",
    ("payment", "capture"): "captured",
    ("payment", "cancel"): "cancelled",
    ("payment", "refund"): "refunded",
}
COUNTS = {
    ("inventory", "reserve"): "reservations",
    ("inventory", "release"): "releases",
    ("shipping", "book"): "shipments",
    ("shipping", "cancel"): "shipments_cancelled",
    ("mail", "send"): "mails",
    ("mail", "recall"): "mails_recalled",
    ("bench", "call"): "calls",
    ("bench", "void"): "calls_voided",
}
BLANK: Json = {"currency": None, **dict.fromkeys([*MONEY.values(), *COUNTS.values()], 0)}


def totals(entries: Iterable[Entry]) -> Json:
    """Return what one order's entries add up to; `rejected` counts definitive refusals."""
    total = {**BLANK, "rejected": 0}
    for entry in entries:
        effect = (entry.partner, entry.effect)
        if effect in MONEY:
            total[MONEY[effect]] += entry.amount or 0
            total["currency"] = entry.currency
        elif effect in COUNTS:
            total[COUNTS[effect]] += 1
        elif entry.rejected:
            total["rejected"] += 1
    return total
