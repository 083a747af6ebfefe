"""Idempotency keys, as all partners share them: replay, reuse, read and undo."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.sandbox import (
    CHARGE,
    MAIL,
    Client,
    Reply,
    served,
)

LINES = [{"sku": "mug", "quantity": 1}]
DOES: dict[str, tuple[str, dict[str, Any]]] = {
    "inventory": ("/inventory/reservations", {"order": "o-1", "lines": LINES}),
    "payment": ("/v1/payment_intents", CHARGE),
    "mail": ("/mail/messages", MAIL),
    "bench": ("/bench/calls", {"order": "o-1", "size": 3}),
}
every_partner = pytest.mark.parametrize("partner", DOES)


async def do(client: Client, partner: str, key: str = "k-1", **changes: Any) -> Reply:
    path, body = DOES[partner]
    return await client.post(path, body | changes, key)


async def in_progress(
    client: Client, partner: str, call: Coroutine[Any, Any, Reply]
) -> asyncio.Task[Reply]:
    """Start a call and hold it at its partner; later calls take no time."""
    client.sandbox.script.latency[partner] = 1
    client.time.hold()
    task = asyncio.create_task(call)
    await client.time.held.wait()
    client.sandbox.script.latency[partner] = 0
    return task


@every_partner
@served
async def test_repeat_is_replayed_and_counted(client: Client, partner: str) -> None:
    await client.stocked()
    first = await do(client, partner)
    again = await do(client, partner)
    assert (again.status, again.raw) == (first.status, first.raw)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    (entry,) = await client.entries("key=k-1")
    assert (entry["requests"], entry["order"], entry["status"]) == (2, "o-1", "done")


@every_partner
@served
async def test_key_with_another_payload_is_refused(client: Client, partner: str) -> None:
    await client.stocked()
    await do(client, partner)
    changed = await do(client, partner, **{"metadata[order]": "o-2", "order": "o-2"})
    if partner == "payment":
        assert changed.status == 400
        assert changed.body["error"]["type"] == "idempotency_error"
    else:
        assert (changed.status, changed.code) == (409, "key_reused")
    assert len(await client.entries("key=k-1")) == 1


@served
async def test_key_of_another_action_is_refused(client: Client) -> None:
    await do(client, "bench")
    assert (await do(client, "mail")).code == "key_reused"


@served
async def test_repeat_with_json_fields_in_another_order_is_replayed(client: Client) -> None:
    await client.made("/bench/calls", {"a": 1, "b": 2}, "k-1")
    again = await client.post("/bench/calls", {"b": 2, "a": 1}, "k-1")
    assert again.headers["Idempotent-Replayed"] == "true"


@every_partner
@served
async def test_key_in_progress_is_a_conflict(client: Client, partner: str) -> None:
    await client.stocked()
    first = await in_progress(client, partner, do(client, partner))
    conflict = await do(client, partner)
    assert conflict.status == 409
    assert conflict.code in ("key_in_use", "idempotency_key_in_use")
    client.time.release()
    assert (await first).status < 300
    assert (await do(client, partner)).status < 300


@every_partner
@served
async def test_request_without_a_key_is_refused(client: Client, partner: str) -> None:
    path, body = DOES[partner]
    reply = await client.post(path, body, None)
    assert reply.status == 400
    assert "Idempotency-Key" in reply.body["error"]["message"]


@pytest.mark.parametrize(
    ("partner", "changes", "status", "code"),
    [
        ("inventory", {"lines": [{"sku": "cup", "quantity": 1}]}, 422, "unknown_sku"),
        ("inventory", {"lines": [{"sku": "mug", "quantity": 11}]}, 409, "out_of_stock"),
        ("payment", {"payment_method": "pm_card_visa_chargeDeclined"}, 402, "card_declined"),
    ],
)
@served
async def test_definitive_refusal_is_kept_and_replayed(
    client: Client, partner: str, changes: dict[str, Any], status: int, code: str
) -> None:
    await client.stocked(10)
    first = await do(client, partner, **changes)
    assert (first.status, first.code) == (status, code)
    await client.call("PUT", "/inventory/stock", {"mug": 99, "cup": 99})
    again = await do(client, partner, **changes)
    assert (again.status, again.raw) == (first.status, first.raw)
    assert again.headers["Idempotent-Replayed"] == "true"
    (entry,) = await client.entries("key=k-1")
    assert (entry["status"], entry["effect"], entry["error"]) == ("rejected", "none", code)
    asked = await client.get("/keys/k-1")
    assert (asked["status"], asked["response"]) == ("rejected", first.body)


@served
async def test_malformed_request_is_not_kept(client: Client) -> None:
    bad = await client.post("/inventory/reservations", {"order": "o-1", "lines": []}, "k-1")
    assert (bad.status, bad.body["error"]["field"]) == (400, "lines")
    await client.stocked()
    assert (await do(client, "inventory")).status == 201


@served
async def test_key_read_shows_its_outcome(client: Client) -> None:
    made = await do(client, "bench", "odd/key ü")
    asked = await client.get("/keys/odd%2Fkey%20%C3%BC")
    assert (asked["partner"], asked["action"]) == ("bench", "call")
    assert (asked["status"], asked["response"], asked["undone"]) == ("done", made.body, False)
    unknown = await client.call("GET", "/keys/none")
    assert (unknown.status, unknown.code) == (404, "unknown_key")


@every_partner
@served
async def test_undo_by_key_undoes_and_blocks_the_do(client: Client, partner: str) -> None:
    await client.stocked()
    made = (await do(client, partner)).body["id"]
    undone = await client.post(f"/{partner}/undo", {"key": "k-1"}, "u-1")
    assert (undone.status, undone.body["status"], undone.body["id"]) == (200, "undone", made)
    again = await client.post(f"/{partner}/undo", {"key": "k-1"}, "u-1")
    assert again.raw == undone.raw
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await client.post(f"/{partner}/undo", {"key": "k-1"}, "u-2")
    assert other.body["effect"] == "none"
    late = await do(client, partner)
    assert (late.status, late.code) == (409, "already_undone")
    assert ("type" in late.body["error"]) == (partner == "payment")
    assert (await client.get("/keys/k-1"))["undone"] is True
    (entry,) = await client.entries("key=u-1")
    assert (entry["target"], entry["order"]) == ("k-1", "o-1")
    assert entry["effect"] in ("release", "cancel", "recall", "void")


@every_partner
@served
async def test_undo_of_an_unknown_key_blocks_a_late_do(client: Client, partner: str) -> None:
    await client.stocked()
    undone = await client.post(f"/{partner}/undo", {"key": "k-1"}, "u-1")
    assert (undone.status, undone.body["effect"]) == (200, "none")
    assert (await do(client, partner)).code == "already_undone"
    asked = await client.call("GET", "/keys/k-1")
    assert (asked.status, asked.body["error"]["undone"]) == (404, True)
    assert await client.entries("key=k-1") == []


@served
async def test_undo_overtakes_a_do_in_progress(client: Client) -> None:
    late = await in_progress(client, "bench", do(client, "bench"))
    assert (await client.call("GET", "/keys/k-1")).code == "key_in_use"
    assert (await client.post("/bench/undo", {"key": "k-1"})).status == 200
    client.time.release()
    assert (await late).code == "already_undone"


@served
async def test_do_during_its_undo_is_undone_in_its_order(
    client: Client,
) -> None:
    undo = await in_progress(client, "bench", client.post("/bench/undo", {"key": "k-1"}, "u-1"))
    assert (await client.call("GET", "/keys/u-1")).code == "key_in_use"
    assert (await do(client, "bench")).status == 201
    client.time.release()
    assert (await undo).body["effect"] == "void"
    assert [entry["effect"] for entry in await client.entries("order=o-1")] == ["call", "void"]


@served
async def test_undo_by_id_blocks_the_do(client: Client) -> None:
    await client.stocked()
    reservation = await client.reserved("k-r")
    shipping = {"order": "o-1", "reservation": reservation, "address": "Elm Street 1"}
    shipment = await client.made("/shipping/shipments", shipping, "k-s")
    intent = await client.made("/v1/payment_intents", CHARGE, "k-p")
    await client.made(f"/shipping/shipments/{shipment}/cancel", {})
    await client.made(f"/inventory/reservations/{reservation}/release", {})
    await client.made(f"/v1/payment_intents/{intent}/cancel")
    body = {"order": "o-1", "lines": LINES}
    assert (await client.post("/inventory/reservations", body, "k-r")).code == "already_undone"
    assert (await client.post("/shipping/shipments", shipping, "k-s")).code == "already_undone"
    assert (await client.post("/v1/payment_intents", CHARGE, "k-p")).code == "already_undone"


@served
async def test_undo_of_another_partner_or_of_an_undo_is_refused(client: Client) -> None:
    await client.stocked()
    reservation = await client.reserved("k-1")
    await client.made(f"/inventory/reservations/{reservation}/release", {}, "k-2")
    assert (await client.post("/bench/undo", {"key": "k-1"})).code == "other_partner"
    assert (await client.post("/inventory/undo", {"key": "k-2"})).code == "not_undoable"
    assert (await client.post("/inventory/undo", {})).body["error"]["field"] == "key"


@served
async def test_full_disk_is_an_error_without_an_effect(client: Client) -> None:
    await client.stocked(3)
    database = client.sandbox.ledger.execute
    (pages,) = database("PRAGMA page_count").fetchone()
    database(f"PRAGMA max_page_count = {pages}")
    long = {"order": "o-1" * 10_000, "lines": [{"sku": "mug", "quantity": 1}]}
    reply = await client.post("/inventory/reservations", long, "k-1")
    assert (reply.status, reply.code) == (500, "ledger_failed")
    assert [entry["action"] for entry in await client.entries()] == ["stock"]
    assert (await client.stock())["reserved"] == 0
    database("PRAGMA max_page_count = 100000")
    assert (await client.post("/inventory/reservations", long, "k-1")).status == 201
    assert (await client.stock())["reserved"] == 1


@served
async def test_second_entry_of_a_key_is_refused_by_the_database(client: Client) -> None:
    await client.made("/bench/calls", {}, "k-1")
    client.sandbox.ledger.keys.clear()
    assert (await client.post("/bench/calls", {}, "k-1")).status == 500
    assert len(await client.entries("partner=bench")) == 1
    assert (await client.post("/bench/calls", {}, "k-1")).status == 201
