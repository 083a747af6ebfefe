"""The partners' ledgers, read from the sandbox page by page."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestration.api import LedgerEntry

from .partner_http import request_json

PAGE = 5_000  # entries
TIMEOUT = 30.0  # seconds for one page
LEVEL = "level"  # kind of an entry with the stock of a SKU, its reference
NOTHING = "none"
WITHOUT_MONEY = {"request", "refuse", "close"}  # a payment that its customer has not confirmed


def entries(base_url: str, partner: str) -> Iterator[LedgerEntry]:
    """Yield what a partner did, oldest first, refusals included."""
    after: int | None = 0
    while after is not None:
        page = request_json(
            f"{base_url}/ledger?partner={partner}&after={after}&limit={PAGE}", timeout=TIMEOUT
        )
        for entry in page["entries"]:
            yield _entry(entry)
        after = page["next"]


def levels(base_url: str) -> Iterator[LedgerEntry]:
    """Yield the stock of each SKU: {start, on_hand, reserved, shipped, …}, with when it was asked for."""
    asked = {"seen_at": time.time()}
    for sku, level in request_json(f"{base_url}/inventory/stock", timeout=TIMEOUT).items():
        yield LedgerEntry(reference=sku, kind=LEVEL, detail=level | asked)


def _entry(entry: Mapping[str, Any]) -> LedgerEntry:
    lines = entry.get("lines")
    return LedgerEntry(
        key=entry["key"],
        reference=entry["order"],
        kind=NOTHING if entry["effect"] in WITHOUT_MONEY else entry["effect"],
        amount=entry["amount"],
        currency=entry["currency"],
        detail=_goods(lines) if lines else entry.get("change"),
        result={"id": entry["ref"]} if entry["ref"] else None,
    )


def _goods(lines: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the quantity of each SKU, from whichever warehouses."""
    goods: Counter[str] = Counter()
    for line in lines:
        goods[line["sku"]] += line["quantity"]
    return dict(goods)
