"""Totals per order, which an auditor compares with the orders' states."""

from collections.abc import Sequence

from aiohttp.web import BaseRequest, StreamResponse

from sandbox.ledger import Ledger
from sandbox.partner import CARRIERS, Json
from sandbox.responses import JSON_HEADERS, encode, json_response

# Each total with the partners and the effects that it counts; money is in minor units.
MONEY = {
    "authorized": (["payment"], ["authorize"]),
    "captured": (["payment"], ["capture", "charge"]),
    "cancelled": (["payment"], ["cancel"]),
    "refunded": (["payment"], ["refund"]),
}
COUNTS = {
    "reservations": (["inventory"], ["reserve"]),
    "releases": (["inventory"], ["release"]),
    "parts_released": (["inventory"], ["release_part"]),
    "shipments": (CARRIERS, ["book"]),
    "shipments_cancelled": (CARRIERS, ["cancel"]),
    "labels": (["shipping"], ["label"]),
    "labels_void": (["shipping"], ["void"]),
    "mails": (["mail"], ["send"]),
    "mails_recalled": (["mail"], ["recall"]),
    "calls": (["bench"], ["call"]),
    "calls_voided": (["bench"], ["void"]),
}


def _of(partners: Sequence[str], effects: Sequence[str]) -> str:
    """Return the filter of the entries that a total counts."""
    return f"FILTER (WHERE partner IN ({_quoted(partners)}) AND effect IN ({_quoted(effects)}))"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


COLUMNS = {
    "currency": "max(currency) FILTER (WHERE http < 400)",
    **{name: f"coalesce(sum(amount) {_of(*of)}, 0)" for name, of in MONEY.items()},
    **{name: f"count(*) {_of(*of)}" for name, of in COUNTS.items()},
    "rejected": "count(*) FILTER (WHERE http >= 400)",
}
SELECT = f'SELECT "order", {", ".join(COLUMNS.values())} FROM entries WHERE '  # noqa: S608 constants
OF_ONE = SELECT + '"order" = ?'
OF_ALL = SELECT + '"order" IS NOT NULL GROUP BY "order"'
PIECE = 500  # orders in one write


async def list_totals(
    request: BaseRequest, ledger: Ledger, query: dict[str, str]
) -> StreamResponse:
    """Answer {order: totals}, of one `order` or of all; `rejected` counts definitive refusals."""
    if "order" in query:
        _, totals = _totals(ledger.execute(OF_ONE, (query["order"],)).fetchone())
        return json_response({query["order"]: totals})
    rows = ledger.execute(OF_ALL).fetchall()
    response = StreamResponse(headers=JSON_HEADERS)
    await response.prepare(request)
    await response.write(b"{")
    for start in range(0, len(rows), PIECE):
        pairs = map(_totals, rows[start : start + PIECE])
        text = ",\n".join(f"{encode(order)}:{encode(totals)}" for order, totals in pairs)
        await response.write((("," if start else "") + text).encode())
    await response.write(b"}\n")
    return response


def _totals(row: tuple[str, *tuple[object, ...]]) -> tuple[str, Json]:
    return row[0], dict(zip(COLUMNS, row[1:], strict=True))
