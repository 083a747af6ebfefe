"""The test cards: faults per key without a fault script."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import ClientError

from sandbox.cards import CARDS
from sandbox.faults import KINDS
from tests.support.sandbox import (
    CHARGE,
    Client,
    Reply,
    running,
    served,
)

INTENTS = "/v1/payment_intents"
TWICE = "pm_card_sandbox_timeoutTwice"
LOST = "pm_card_sandbox_replyLost"


async def pay(client: Client, method: str, key: str = "k-1") -> Reply:
    return await client.post(INTENTS, CHARGE | {"payment_method": method}, key)


async def give_up(client: Client, key: str = "k-1") -> None:
    """Pay, and disconnect as soon as the card's fault has begun."""
    before = client.sandbox.cards.count(key)
    task = asyncio.create_task(pay(client, TWICE, key))
    while client.sandbox.cards.count(key) == before:
        assert not task.done()
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@served
async def test_authorization_with_the_timeout_card_succeeds_at_the_third_request(
    client: Client,
) -> None:
    for _ in range(2):
        await give_up(client)
        assert (await client.call("GET", "/keys/k-1")).status == 404
    reply = await pay(client, TWICE)
    assert (reply.status, reply.body["payment_method"]) == (200, TWICE)
    (entry,) = await client.entries()
    assert (entry["key"], entry["requests"]) == ("k-1", 3)
    assert (await pay(client, TWICE)).raw == reply.raw


def test_timeout_of_a_card_lasts_a_minute() -> None:
    assert CARDS[TWICE].fault == "timeout"
    assert KINDS["timeout"]["seconds"] >= 60


@served
async def test_lost_reply_is_replayed_at_the_retry(client: Client) -> None:
    with pytest.raises(ClientError):
        await pay(client, LOST)
    assert (await client.get("/keys/k-1"))["status"] == "done"
    again = await pay(client, LOST)
    assert again.status == 200
    assert again.headers["Idempotent-Replayed"] == "true"
    (entry,) = await client.entries()
    assert (entry["effect"], entry["requests"]) == ("authorize", 2)


@served
async def test_card_fault_counts_each_key_apart(client: Client) -> None:
    for key in ("k-1", "k-2"):
        with pytest.raises(ClientError):
            await pay(client, LOST, key)
        assert (await pay(client, LOST, key)).status == 200


@served
async def test_capture_has_no_card_fault(client: Client) -> None:
    with pytest.raises(ClientError):
        await pay(client, LOST)
    ref = (await pay(client, LOST)).body["id"]
    taken = await client.post(f"{INTENTS}/{ref}/capture")
    assert (taken.status, taken.body["payment_method"]) == (200, LOST)


@served
async def test_script_fault_precedes_the_card_fault(client: Client) -> None:
    await client.faults({"fault": "status", "status": 503, "times": 1})
    assert (await pay(client, LOST)).status == 503
    with pytest.raises(ClientError):
        await pay(client, LOST)
    assert (await pay(client, LOST)).status == 200


@served
async def test_card_fault_repeats_after_a_reset(client: Client) -> None:
    with pytest.raises(ClientError):
        await pay(client, LOST)
    assert (await client.call("DELETE", "/ledger")).status == 200
    with pytest.raises(ClientError):
        await pay(client, LOST)


def test_card_fault_count_survives_a_restart(tmp_path: Path) -> None:
    async def inside() -> None:
        async with running(tmp_path) as client:
            await give_up(client)
        async with running(tmp_path) as client:
            await give_up(client)
            assert (await pay(client, TWICE)).status == 200
        async with running(tmp_path) as client:
            reply = await pay(client, TWICE)
            assert (reply.status, reply.body["payment_method"]) == (200, TWICE)

    asyncio.run(inside())
