"""The paths without a partner: reset, health, and unknown ones."""

import pytest
from aiohttp import ClientError

from tests.support.sandbox import Client, served


@served
async def test_reset_deletes_all_state(client: Client) -> None:
    await client.stocked()
    await client.reserved("k-1")
    await client.faults({"fault": "late_effect", "seconds": 60})
    with pytest.raises(ClientError):
        await client.post("/bench/calls", {})
    assert (await client.call("DELETE", "/ledger")).status == 200
    assert await client.entries() == []
    assert await client.get("/inventory/stock") == {}
    assert (await client.get("/faults"))["faults"] == []
    assert (await client.call("GET", "/keys/k-1")).status == 404
    await client.made("/bench/calls", {}, "k-1")


@served
async def test_health_has_status_and_entries(client: Client) -> None:
    assert (await client.get("/healthz")) == {"status": "ok", "entries": 0}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("POST", "/inventory/reservations/x/burn", 404),
        ("DELETE", "/faults/1", 404),
        ("PATCH", "/ledger", 405),
        ("GET", "/bench/calls", 405),
        ("GET", "/shipping/shipments/x/cancel", 405),
    ],
)
@served
async def test_unknown_path_or_method(client: Client, method: str, path: str, status: int) -> None:
    reply = await client.call(method, path)
    assert reply.status == status
    assert reply.body["error"]["message"]
