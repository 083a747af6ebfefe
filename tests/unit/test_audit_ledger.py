"""The partners' ledger, read from a real sandbox page by page."""

import asyncio

import pytest

from orchestration.ledger import LedgerEntry
from orders import ledger
from orders.agents.inventory import Inventory
from tests.unit.test_sandbox_kit import Client, served


async def read(client: Client, *partners: str) -> list[LedgerEntry]:
    """Read in a thread, as an audit would in its own process."""
    base = str(client.session._base_url).rstrip("/")
    return await asyncio.to_thread(
        lambda: [one for partner in partners for one in ledger.entries(base, partner)]
    )


@served
async def test_all_pages_of_one_partner_are_read(client: Client) -> None:
    ledger_page = ledger.PAGE
    ledger.PAGE = 2
    try:
        for number in range(5):
            await client.made("/bench/calls", {"order": "o-1"}, f"b-{number}")
        found = await read(client, "bench", "mail")
    finally:
        ledger.PAGE = ledger_page
    assert [one.key for one in found] == [f"b-{number}" for number in range(5)]
    assert {(one.reference, one.kind) for one in found} == {("o-1", "call")}


@served
async def test_goods_and_stock_are_read(client: Client) -> None:
    await client.call("PUT", "/inventory/stock", {"mug": 5})
    lines = [{"sku": "mug", "quantity": 2}]
    await client.made("/inventory/reservations", {"order": "o-1", "lines": lines}, "k-1")
    stocked, reserved = await read(client, "inventory")
    assert (stocked.kind, stocked.key, stocked.reference) == ("stock", None, None)
    assert (reserved.kind, reserved.detail) == ("reserve", {"mug": 2})
    base = str(client.session._base_url).rstrip("/")
    (level,) = await asyncio.to_thread(lambda: list(ledger.levels(base)))
    assert level.reference == "mug"
    assert level.detail == {"start": 5, "on_hand": 3, "reserved": 2, "shipped": 0}


def test_real_services_have_no_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inventory, "base_url", "https://inventory.example")
    assert Inventory().ledger() is None
