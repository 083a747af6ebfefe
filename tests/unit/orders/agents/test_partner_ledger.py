"""The partners' ledger, read from a real sandbox."""

import asyncio
import time

import pytest

from orchestration.agents.service_ledger import LedgerEntry
from orders.agents import partner_ledger
from orders.agents.inventory import Inventory
from tests.support.sandbox import Client, served


async def read(client: Client, *partners: str) -> list[LedgerEntry]:
    """Read in a thread, because the reader blocks."""
    base = str(client.session._base_url).rstrip("/")
    return await asyncio.to_thread(
        lambda: [entry for partner in partners for entry in partner_ledger.entries(base, partner)]
    )


@served
async def test_ledger_is_read_page_by_page(client: Client) -> None:
    ledger_page = partner_ledger.PAGE
    partner_ledger.PAGE = 2
    try:
        for number in range(5):
            await client.made("/bench/calls", {"order": "o-1"}, f"b-{number}")
        entries = await read(client, "bench", "mail")
    finally:
        partner_ledger.PAGE = ledger_page
    assert [entry.key for entry in entries] == [f"b-{number}" for number in range(5)]
    assert {(entry.reference, entry.kind) for entry in entries} == {("o-1", "call")}


@served
async def test_ledger_of_goods_and_stock(client: Client) -> None:
    await client.call("PUT", "/inventory/stock", {"mug": 5})
    lines = [{"sku": "mug", "quantity": 2}]
    await client.made("/inventory/reservations", {"order": "o-1", "lines": lines}, "k-1")
    stocked, reserved = await read(client, "inventory")
    assert (stocked.kind, stocked.key, stocked.reference) == ("stock", None, None)
    assert (reserved.kind, reserved.detail) == ("reserve", {"mug": 2})
    base = str(client.session._base_url).rstrip("/")
    (level,) = await asyncio.to_thread(lambda: list(partner_ledger.levels(base)))
    assert level.reference == "mug"
    for name in ("moved_at", "seen_at"):
        assert level.detail.pop(name) == pytest.approx(time.time(), abs=30)
    assert level.detail == {"start": 5, "on_hand": 3, "reserved": 2, "shipped": 0,
                            "warehouses": {"main": 3}, "held": {"main": 2}}  # fmt: skip


def test_ledger_of_a_real_service_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inventory, "base_url", "https://inventory.example")
    assert Inventory().ledger() is None
