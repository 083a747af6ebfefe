"""What the steps of an order take from its row when they are sent: as it is by then (P22)."""

from collections.abc import Mapping, Sequence
from typing import Any

from .models import Order

ADDRESS = ("name", "street", "postcode", "city", "country")


def load(references: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the address and e-mail address of orders, by their ids (one query)."""
    rows = Order.objects.filter(id__in=references).values("id", "email", *ADDRESS)
    return {
        str(row["id"]): {"email": row["email"], "address": {name: row[name] for name in ADDRESS}}
        for row in rows
    }
