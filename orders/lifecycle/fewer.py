"""What an order's message is once something was left out of it. Pure functions.

Once its goods are reserved, the steps before have used the message as it was. What is left is then in a field
of its own, which the steps to come take: so the engine refuses a removal after one of them was sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orders import handling
from orders.charges import Charges, from_json

from .message import Line

LEFT = "left"  # the field of the task
Places = list[dict[str, Any]]  # [{sku, quantity, warehouse?}]


class NothingLeft(Exception):
    """The order would have nothing to send; the customer can cancel it instead."""


class NotRemovable(Exception):
    """No such units are in the order, or they are made for the customer."""


def present(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an order's message as it is now, with what its task says is left."""
    return {**data, **data.get(LEFT, {})}


def message_of(
    before: Mapping[str, Any], lines: Sequence[Line]
) -> tuple[dict[str, Any], Charges, handling.Handling]:
    """Return what changes in an order's message if these lines are left, but for the confirmation."""
    known = handling.from_json(before.get("handling"))
    charges = from_json(before.get("charges")).of_fewer(
        lines, free=not before["total"], emailed=known.emailed
    )
    total = sum(line.price for line in lines) + charges.extra
    special = known.of_fewer(lines, handling.to_pay(before), total)
    changed: dict[str, Any] = {"lines": [line.as_json() for line in lines], "total": total}
    if before.get("charges"):
        changed["charges"] = charges.as_json()
    if before.get("handling"):
        changed["handling"] = special.fields(lines, total)
    return changed, charges, special


def without(lines: Iterable[Line], units: Mapping[str, int], made: Iterable[str]) -> list[Line]:
    """Return the lines that are left without units by SKU; raise `NotRemovable` if they are not there.

    What is made for the customer stays.
    """
    known = {line.sku: line for line in lines}
    if not units or any(
        sku not in known or sku in made or not 1 <= count <= known[sku].quantity
        for sku, count in units.items()
    ):
        raise NotRemovable
    counts = {sku: line.quantity - units.get(sku, 0) for sku, line in known.items()}
    return [
        Line(sku=sku, name=line.name, unit_price=line.unit_price, quantity=counts[sku])
        for sku, line in known.items()
        if counts[sku]
    ]


def left(
    before: Mapping[str, Any], units: Mapping[str, int], reserved: Places
) -> tuple[dict[str, Any], Charges, handling.Handling]:
    """Return what is left of an order without units by SKU, as its task has it, and what it costs.

    `reserved` has the goods that are in several warehouses. Raises `NotRemovable` and `NothingLeft`.
    """
    known = handling.from_json(before.get("handling"))
    lines = without((Line(**line) for line in before["lines"]), units, known.made)
    if not lines or (known.ships and {line.sku for line in lines} <= {*known.emailed}):
        raise NothingLeft
    changed, charges, special = message_of(before, lines)
    parts: list[Places] = before.get("parts", [])
    stocked = {sku: count for sku, count in units.items() if sku not in known.emailed}
    changed["parts"] = [*parts, _part(beside(reserved, parts), stocked)]
    changed["only"] = [
        {"sku": line.sku, "quantity": line.quantity}
        for line in lines
        if line.sku not in known.emailed
    ]
    return changed, charges, special


def beside(reserved: Sequence[Any], parts: Iterable[Places]) -> list[Any]:
    """Return what is left of reserved goods beside the parts that were removed, by warehouse."""
    gone: dict[tuple[str, str | None], int] = {}
    for part in parts:
        for place in part:
            key = place["sku"], place.get("warehouse")
            gone[key] = gone.get(key, 0) + place["quantity"]
    rest = [
        {**place, "quantity": place["quantity"] - gone.get((place["sku"], place["warehouse"]), 0)}
        for place in reserved
    ]
    return [place for place in rest if place["quantity"]]


def _part(reserved: Places, units: Mapping[str, int]) -> Places:
    """Return where units are taken from: the last of the warehouses first, if there are several."""
    part: Places = []
    for sku, count in units.items():
        missing = count
        for place in reversed(reserved):
            if place["sku"] == sku and (taken := min(missing, place["quantity"])):
                part.append({**place, "quantity": taken})
                missing -= taken
        if missing:  # all of them are in one warehouse
            part.append({"sku": sku, "quantity": missing})
    return part
