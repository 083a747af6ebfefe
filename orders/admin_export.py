"""Orders as CSV, with net, tax and gross: for the shop's accounts."""

import csv
from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone

from .charges import from_json
from .models import Order
from .money import as_decimal
from .times import shop_zone

COLUMNS = (
    "number", "placed_at", "country", "status", "currency", "goods", "shipping", "discount", "gross", "net",
    "tax",
)  # fmt: skip
AT_ONCE = 500  # rows of a look at the database


class Echo:
    """A file that gives each line back instead of keeping it: an export may be of any length."""

    def write(self, line: str) -> str:
        """Return the line."""
        return line


@admin.action(description="Export selected orders as CSV", permissions=["view"])
def as_csv(_admin: Any, _request: HttpRequest, orders: QuerySet[Order]) -> StreamingHttpResponse:
    """Return the selected orders, a row each, times in the shop's zone."""
    response = StreamingHttpResponse(_lines(orders), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="orders.csv"'
    return response


def _lines(orders: QuerySet[Order]) -> Iterator[str]:
    writer = csv.writer(Echo())
    yield writer.writerow(COLUMNS)
    for order in orders.iterator(AT_ONCE):
        yield writer.writerow(_row(order))


def _row(order: Order) -> list[Any]:
    charges = from_json(order.charges)
    amounts = (
        order.total - charges.extra, charges.shipping, charges.discount, order.total,
        order.total - charges.tax, charges.tax,
    )  # fmt: skip
    placed_at = timezone.localtime(order.created_at, shop_zone()).isoformat(timespec="seconds")
    return [
        order.number, placed_at, order.country, order.status, order.currency,
        *(as_decimal(amount, order.currency) for amount in amounts),
    ]  # fmt: skip
