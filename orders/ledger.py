"""The partners' ledger, as the sandbox shows it to auditors: page by page."""

from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.api import LedgerEntry

from .exchange import exchange

PAGE = 5_000  # entries
PATIENCE = 30.0  # seconds that a page may take
LEVEL = "level"  # the kind of an entry that shows the stock of a SKU, its reference


def entries(base_url: str, partner: str) -> Iterator[LedgerEntry]:
    """Yield everything that a partner did, oldest first; of what is refused, that it was."""
    after: int | None = 0
    while after is not None:
        page = exchange(
            f"{base_url}/ledger?partner={partner}&after={after}&limit={PAGE}", patience=PATIENCE
        )
        for entry in page["entries"]:
            yield _entry(entry)
        after = page["next"]


def levels(base_url: str) -> Iterator[LedgerEntry]:
    """Yield the stock of each SKU: {start, on_hand, reserved, shipped}."""
    for sku, level in exchange(f"{base_url}/inventory/stock", patience=PATIENCE).items():
        yield LedgerEntry(reference=sku, kind=LEVEL, detail=level)


def _entry(entry: Mapping[str, Any]) -> LedgerEntry:
    lines = entry.get("lines")
    return LedgerEntry(
        key=entry["key"],
        reference=entry["order"],
        kind=entry["effect"],
        amount=entry["amount"],
        currency=entry["currency"],
        detail={line["sku"]: line["quantity"] for line in lines} if lines else None,
    )
