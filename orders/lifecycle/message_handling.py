"""The part of an order's message that says how it differs from a parcel of goods in stock."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from orders.currency import LARGEST_TOTAL
from orders.handling import NONE, Counted, Handling, from_json

from .fields import Malformed, check_fields, integer

MOST_DAYS = 365  # within which goods are made
FIELDS = "gift_card to_pay emailed gifts made finish_within reserve released_at"


def read_handling(value: Any, lines: Sequence[Counted]) -> Handling:
    """Return the handling in a message; raise `Malformed` unless it is about its lines.

    None: the order is an ordinary one, as in messages of older releases. `check_sums` follows.
    """
    if value is None:
        return NONE
    check_fields(value, "the handling", FIELDS, optional="ships exchange")
    skus = {line.sku for line in lines}
    emailed, made = value["emailed"], value["made"]
    if not isinstance(emailed, list) or not isinstance(made, Mapping):
        raise Malformed(f"emailed is {emailed!r} and made is {made!r}")
    if len(set(map(str, emailed))) < len(emailed) or not {*map(str, emailed), *made} <= skus:
        raise Malformed("what is e-mailed or made is not on the lines")
    if value.get("ships", False) is not False:  # it is there where nothing ships
        raise Malformed(f"ships is {value['ships']!r}")
    integer(value["gift_card"], "gift_card", least=0, most=LARGEST_TOTAL)
    if "exchange" in value:  # it is there where goods that came back pay
        integer(value["exchange"], "exchange", most=LARGEST_TOTAL)
    for days in made.values():
        integer(days, "days", most=MOST_DAYS)
    _check_moment(value["released_at"])
    return from_json(value)


def check_sums(handling: Handling, value: Any, lines: Sequence[Counted], total: int) -> None:
    """Raise `Malformed` unless what a message says of the handling follows from its lines and total."""
    if handling.paid > total or handling.as_json(lines, total) != (value or {}):
        raise Malformed(f"handling is {value!r}, which does not fit the lines")


def _check_moment(value: Any) -> None:
    try:
        if value is None or datetime.fromisoformat(value).tzinfo:
            return
    except (TypeError, ValueError):
        pass
    raise Malformed(f"released_at is {value!r}")
