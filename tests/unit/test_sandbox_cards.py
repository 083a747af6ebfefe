"""Test cards that make trouble by themselves, key by key, without a fault script."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import ClientError

from sandbox.cards import CARDS
from sandbox.faults import KINDS
from tests.unit.test_sandbox_kit import CHARGE, Client, Reply, running, served

INTENTS = "/v1/payment_intents"
TWICE = "pm_card_sandbox_timeoutTwice"
LOST = "pm_card_sandbox_replyLost"


async def pay(client: Client, method: str, key: str = "k-1") -> Reply:
    return await client.post(INTENTS, CHARGE | {"payment_method": method}, key)


async def give_up(client: Client, key: str = "k-1") -> None:
    """Pay, and hang up as soon as the card has made its trouble."""
    before = client.sandbox.cards.spoiled.get(key, 0)
    task = asyncio.create_task(pay(client, TWICE, key))
    while client.sandbox.cards.spoiled.get(key, 0) == before:
        assert not task.done()
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@served
async def test_two_timeouts_do_nothing_and_the_third_request_succeeds(client: Client) -> None:
    for _ in range(2):
        await give_up(client)
        assert (await client.call("GET", "/keys/k-1")).status == 404
    reply = await pay(client, TWICE)
    assert (reply.status, reply.body["payment_method"]) == (200, TWICE)
    (entry,) = await client.entries()
    assert (entry["key"], entry["requests"]) == ("k-1", 3)
    assert (await pay(client, TWICE)).raw == reply.raw


def test_a_timeout_outlasts_any_patience_and_ends_in_a_cut() -> None:
    assert CARDS[TWICE].fault == "timeout"
    assert KINDS["timeout"]["seconds"] >= 60


@served
async def test_a_lost_reply_is_found_done(client: Client) -> None:
    with pytest.raises(ClientError):
        await pay(client, LOST)
    assert (await client.get("/keys/k-1"))["status"] == "done"
    again = await pay(client, LOST)
    assert again.status == 200
    assert again.headers["Idempotent-Replayed"] == "true"
    (entry,) = await client.entries()
    assert (entry["effect"], entry["requests"]) == ("authorize", 2)


@served
async def test_every_key_goes_the_same_way(client: Client) -> None:
    for key in ("k-1", "k-2"):
        with pytest.raises(ClientError):
            await pay(client, LOST, key)
        assert (await pay(client, LOST, key)).status == 200


@served
async def test_later_steps_of_the_order_are_spared(client: Client) -> None:
    with pytest.raises(ClientError):
        await pay(client, LOST)
    ref = (await pay(client, LOST)).body["id"]
    taken = await client.post(f"{INTENTS}/{ref}/capture")
    assert (taken.status, taken.body["payment_method"]) == (200, LOST)


@served
async def test_a_script_goes_first_and_does_not_use_the_card_up(client: Client) -> None:
    await client.faults({"fault": "status", "status": 503, "times": 1})
    assert (await pay(client, LOST)).status == 503
    with pytest.raises(ClientError):
        await pay(client, LOST)
    assert (await pay(client, LOST)).status == 200


@served
async def test_reset_gives_a_key_its_trouble_back(client: Client) -> None:
    with pytest.raises(ClientError):
        await pay(client, LOST)
    assert (await client.call("DELETE", "/ledger")).status == 200
    with pytest.raises(ClientError):
        await pay(client, LOST)


def test_a_restart_does_not_begin_anew(tmp_path: Path) -> None:
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


def test_a_ledger_of_former_days_is_read(tmp_path: Path) -> None:
    done = ["e", 1, 1.5, "payment", "authorize", "k-1", "o-1", "pi_1", None, 5, "eur", 200]
    done += ["authorize", "f", None, {"order": "o-1"}, 1]
    rows = [["sandbox", 1], done]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    async def inside() -> None:
        async with running(tmp_path) as client:
            intent = await client.get(f"{INTENTS}/pi_1")
            assert (intent["payment_method"], intent["metadata"]) == (
                "pm_card_visa",
                {"order": "o-1"},
            )

    asyncio.run(inside())
