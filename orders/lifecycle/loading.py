"""Order details that steps load when they are sent (P22)."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings

from orders import addresses
from orders.models import Order

ADDRESS = ("name", "street", "postcode", "city", "region", "country")


def load(references: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return address, with its label's lines, e-mail address and page by order id (one query)."""
    rows = Order.objects.filter(id__in=references).values("id", "email", *ADDRESS)
    return {
        str(row["id"]): {"email": row["email"], "address": _address(row), "page": page(row["id"])}
        for row in rows
    }


def load_for_parcels(references: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the addresses of parcels by their references, which begin with their orders' ids."""
    orders = {reference: reference.partition("/")[0] for reference in references}
    known = load(sorted(set(orders.values())))
    return {reference: known[order] for reference, order in orders.items() if order in known}


def page(order: UUID) -> str:
    """Return the address of an order's page, as a bank sends its customer back to it.

    It has no signature, as others read it: the customer's browser knows the order. Schedulers, which
    ask for it, load no addresses of pages.
    """
    return f"{settings.SITE_URL}/orders/{order}/"


def _address(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the parts that an address has, and its label."""
    parts = {name: row[name] for name in ADDRESS if row[name]}
    return {**parts, "label": addresses.label(row)}
