"""Order details that steps load when they are sent (P22)."""

from collections.abc import Mapping, Sequence
from typing import Any

from orders import addresses
from orders.models import Order

ADDRESS = ("name", "street", "postcode", "city", "region", "country")


def load(references: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return address, with the lines of its label, and e-mail address by order id (one query)."""
    rows = Order.objects.filter(id__in=references).values("id", "email", *ADDRESS)
    return {str(row["id"]): {"email": row["email"], "address": _address(row)} for row in rows}


def _address(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the parts that an address has, and its label."""
    parts = {name: row[name] for name in ADDRESS if row[name]}
    return {**parts, "label": addresses.label(row)}
