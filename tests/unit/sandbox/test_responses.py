"""Each fault of a script as a client sees it, and the ledger after it."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import ClientError

from tests.support.sandbox import (
    CHARGE,
    Client,
    bench_call,
    is_done,
    served,
)

SOON = {"seconds": 0.01}


async def fired(client: Client) -> int:
    return int((await client.get("/faults"))["faults"][0]["fired"])


@pytest.mark.parametrize(
    ("kind", "params", "has_effect"),
    [
        ("timeout", SOON, False),
        ("timeout_after_effect", SOON, True),
        ("reset", {}, False),
        ("reset_after_effect", {}, True),
        ("down", {}, False),
    ],
)
@served
async def test_fault_that_cuts_the_connection(
    client: Client, kind: str, params: dict[str, Any], has_effect: bool
) -> None:
    await client.faults({"fault": kind, "partner": "bench", "times": 1, **params})
    with pytest.raises(ClientError):
        await bench_call(client)
    assert await is_done(client) is has_effect
    assert await fired(client) == 1
    again = await bench_call(client)
    assert again.status == 201
    assert ("Idempotent-Replayed" in again.headers) is has_effect
    (entry,) = await client.entries("key=k-1")
    assert entry["requests"] == (1 if kind == "down" else 2)


@pytest.mark.parametrize(
    ("kind", "params", "status", "code", "has_effect"),
    [
        ("status", {"status": 503}, 503, "internal_error", False),
        ("status", {}, 500, "internal_error", False),
        ("status", {"status": 520}, 520, "internal_error", False),
        ("status", {"status": 503, "retry_after": 7}, 503, "internal_error", False),
        ("status", {"status": 302}, 302, "failure", False),
        ("status_after_effect", {"status": 502}, 502, "internal_error", True),
        ("too_many_requests", {"retry_after": 7}, 429, "rate_limit", False),
        ("ok_with_error", {}, 200, "internal_error", False),
        ("ok_with_error", {"code": "oops", "message": "No."}, 200, "oops", False),
    ],
)
@served
async def test_fault_that_answers_an_error(
    client: Client, kind: str, params: dict[str, Any], status: int, code: str, has_effect: bool
) -> None:
    await client.faults({"fault": kind, **params})
    reply = await bench_call(client)
    assert (reply.status, reply.code) == (status, code)
    assert reply.body["error"]["message"]
    assert await is_done(client) is has_effect
    assert reply.headers.get("Retry-After") == ("7" if "retry_after" in params else None)
    await client.faults()
    assert (await bench_call(client)).status == 201


@served
async def test_payment_errors_keep_stripes_shape(client: Client) -> None:
    kinds = {
        "status": "api_error",
        "ok_with_error": "api_error",
        "too_many_requests": "invalid_request_error",
        "reject": "card_error",
    }
    for kind, type_ in kinds.items():
        await client.faults({"fault": kind, "partner": "payment", "action": "authorize"})
        reply = await client.post("/v1/payment_intents", CHARGE)
        assert reply.body["error"]["type"] == type_
    assert (reply.status, reply.code) == (402, "card_declined")


@served
async def test_wrong_json_has_its_effect(client: Client) -> None:
    await client.faults({"fault": "wrong_json"})
    reply = await bench_call(client)
    assert (reply.status, reply.headers["Content-Type"]) == (201, "application/json")
    with pytest.raises(json.JSONDecodeError):
        _ = reply.body
    assert await is_done(client)


@served
async def test_wrong_schema_has_its_effect(client: Client) -> None:
    await client.faults({"fault": "wrong_schema"})
    reply = await bench_call(client)
    assert reply.status == 201
    assert not {"id", "status", "error"} & set(reply.body)
    assert await is_done(client)


@served
async def test_html_has_no_effect(client: Client) -> None:
    await client.faults({"fault": "html"})
    reply = await bench_call(client)
    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("text/html")
    assert reply.raw.startswith(b"<!doctype html>")
    assert not await is_done(client)


@served
async def test_slow_answer_has_its_effect_at_once(client: Client) -> None:
    await client.faults({"fault": "slow", "seconds": 1})
    task = asyncio.create_task(bench_call(client))
    while not await is_done(client):
        assert not task.done()
    assert not task.done()
    assert (await task).status == 201


@served
async def test_latency_comes_before_the_effect(client: Client) -> None:
    await client.faults({"fault": "latency", "seconds": 5}, {"fault": "latency", "seconds": 2})
    client.time.hold()
    task = asyncio.create_task(bench_call(client))
    await client.time.held.wait()
    assert client.time.taken == [7]
    assert not await is_done(client)
    client.time.release()
    assert (await task).status == 201


@served
async def test_reset_within_answer_sends_half_of_it(client: Client) -> None:
    await client.faults({"fault": "reset_within_answer"})
    with pytest.raises(ClientError):
        await bench_call(client)
    assert await is_done(client)


@served
async def test_drip_sends_byte_by_byte(client: Client) -> None:
    await client.faults({"fault": "drip", "seconds": 0.001})
    headers = {"Idempotency-Key": "k-1"}
    async with client.session.post("/bench/calls", data="{}", headers=headers) as response:
        assert await is_done(client)
        pieces = [piece async for piece in response.content.iter_any()]
    assert len(pieces) > 10
    assert json.loads(b"".join(pieces))["status"] == "done"


@served
async def test_reject_is_definitive(client: Client) -> None:
    fault = {"fault": "reject", "code": "no_way", "message": "Never.", "status": 410, "times": 1}
    await client.faults(fault)
    first = await bench_call(client)
    assert (first.status, first.body) == (410, {"error": {"code": "no_way", "message": "Never."}})
    assert (await bench_call(client)).raw == first.raw
    assert (await client.get("/keys/k-1"))["status"] == "rejected"


@served
async def test_reject_replays_a_key_that_is_done(client: Client) -> None:
    await bench_call(client)
    await client.faults({"fault": "reject"})
    assert (await bench_call(client)).status == 201
    assert (await bench_call(client, "k-2")).status == 422


@served
async def test_late_effect_comes_after_the_connection_is_cut(client: Client) -> None:
    await client.faults({"fault": "late_effect", "seconds": 5})
    client.time.hold()
    with pytest.raises(ClientError):
        await bench_call(client)
    assert not await is_done(client)
    client.time.release()
    await asyncio.gather(*client.sandbox.background.running)
    assert await is_done(client)


@served
async def test_late_effect_after_its_undo_is_refused(client: Client) -> None:
    await client.faults({"fault": "late_effect", "action": "call", "seconds": 5})
    client.time.hold()
    with pytest.raises(ClientError):
        await bench_call(client)
    (late,) = client.sandbox.background.running
    assert (await client.post("/bench/undo", {"key": "k-1"})).status == 200
    assert not late.done()
    client.time.release()
    await late
    assert not await is_done(client)
    assert await client.entries("key=k-1") == []


@pytest.mark.parametrize("kind", ["timeout", "slow", "drip", "timeout_after_effect"])
@served
async def test_client_timeout_during_a_fault_leaves_the_key_usable(
    client: Client, kind: str
) -> None:
    await client.faults({"fault": kind, "seconds": 0.02, "times": 1})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bench_call(client), 0.01)
    assert (await bench_call(client)).status == 201
