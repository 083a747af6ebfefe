"""Goods as requests and answers have them: SKUs, quantities and warehouses."""

from collections.abc import Mapping
from typing import Any

from sandbox.fields import text, whole
from sandbox.partner import Json
from sandbox.refusals import bad_field

# [[sku, quantity, warehouse], ...]; of older ledgers, and of what comes back, [[sku, quantity], ...]
Lines = list[list[Any]]
MAIN = "main"  # the warehouse of stock that is set without one


def read_lines(params: Mapping[str, Any]) -> dict[str, int]:
    """Return the quantity of each SKU that a request names; raises a 400 Refusal."""
    lines = params.get("lines")
    if not isinstance(lines, list) or not lines:
        raise bad_field("lines", "'lines' must be a non-empty list of {sku, quantity}.")
    quantities: dict[str, int] = {}
    for line in lines:
        if not isinstance(line, dict):
            raise bad_field("lines", f"Each line must be {{sku, quantity}}, but one is {line!r}.")
        sku = text(line, "sku")
        quantities[sku] = quantities.get(sku, 0) + whole(line.get("quantity"), "quantity", least=1)
    return quantities


def read_places(params: Mapping[str, Any]) -> Lines:
    """Return the lines that a request names, each with its warehouse or ""; raises a 400 Refusal."""
    read_lines(params)
    return [
        [line["sku"], line["quantity"], line.get("warehouse") or ""] for line in params["lines"]
    ]


def by_warehouse(sku: str, value: Any) -> dict[str, int]:
    """Return the quantities in each warehouse; raises Refusal."""
    by_name = value if isinstance(value, dict) and value else {MAIN: value}
    return {name: whole(quantity, sku, least=0) for name, quantity in by_name.items()}


def show_lines(lines: Lines) -> list[Json]:
    """Return lines as JSON objects."""
    return [dict(zip(("sku", "quantity", "warehouse"), line, strict=False)) for line in lines]
