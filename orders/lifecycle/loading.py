"""Order details that steps load when they are sent (P22)."""

from collections.abc import Mapping, Sequence
from typing import Any

from orders.models import Order

ADDRESS = ("name", "street", "postcode", "city", "country")


def load(references: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return address and e-mail address by order id (one query)."""
    rows = Order.objects.filter(id__in=references).values("id", "email", *ADDRESS)
    return {
        str(row["id"]): {"email": row["email"], "address": {name: row[name] for name in ADDRESS}}
        for row in rows
    }
