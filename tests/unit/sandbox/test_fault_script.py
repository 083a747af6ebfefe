"""The fault script: which requests its faults affect, and changes of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError

from tests.support.sandbox import (
    CHARGE,
    Client,
    bench_call,
    is_done,
    restarted,
    served,
)


@served
async def test_fault_is_limited_to_partner_action_key_and_order(client: Client) -> None:
    await client.stocked()
    await client.faults({"fault": "status", "partner": "inventory", "action": "release"})
    ref = await client.reserved()
    assert (await client.post(f"/inventory/reservations/{ref}/release", {})).status == 500
    await client.faults({"fault": "status", "key": "charge-*"})
    assert (await bench_call(client, "charge-1")).status == 500
    assert (await bench_call(client, "other-1")).status == 201
    await client.faults({"fault": "status", "order": "o-[89]"})
    assert (await bench_call(client, "k-8", order="o-8")).status == 500
    assert (await bench_call(client, "k-7", order="o-7")).status == 201
    assert (await client.post("/bench/calls", {})).status == 201


@served
async def test_fault_of_an_order_with_requests_by_id_or_key(client: Client) -> None:
    ref = await client.made("/v1/payment_intents", CHARGE, "k-a")
    await client.faults({"fault": "status", "order": "o-1"})
    assert (await client.post(f"/v1/payment_intents/{ref}/capture")).status == 500
    assert (await client.post("/v1/refunds", {"payment_intent": ref})).status == 500
    assert (await client.post("/payment/undo", {"key": "k-a"})).status == 500


@served
async def test_fault_with_times_and_skip(client: Client) -> None:
    await client.faults({"fault": "status", "times": 2, "skip": 1})
    statuses = [(await bench_call(client, f"k-{number}")).status for number in range(5)]
    assert statuses == [201, 500, 500, 201, 201]
    (fault,) = (await client.get("/faults"))["faults"]
    assert (fault["passed"], fault["fired"]) == (1, 2)


@served
async def test_fault_with_a_probability(client: Client) -> None:
    await client.faults({"fault": "status", "probability": 0})
    assert (await bench_call(client)).status == 201
    await client.faults({"fault": "status", "probability": 0.5})
    statuses = {(await bench_call(client, f"p-{number}")).status for number in range(60)}
    assert statuses == {201, 500}


@served
async def test_reads_fail_only_by_their_action_or_down(client: Client) -> None:
    await bench_call(client)
    await client.faults({"fault": "status", "partner": "bench"})
    assert await is_done(client)
    await client.faults({"fault": "status", "partner": "bench", "action": "read"})
    assert (await client.call("GET", "/keys/k-1")).status == 500
    await client.faults({"fault": "down", "partner": "payment"})
    assert await is_done(client)
    for path in ("/v1/payment_intents/pi_1", "/keys/unknown?partner=payment"):
        with pytest.raises(ClientError):
            await client.call("GET", path)
    await client.faults({"fault": "reject", "action": "read"})
    assert (await client.call("GET", "/keys/k-1")).status == 422
    await client.faults({"fault": "late_effect", "action": "read"})
    with pytest.raises(ClientError):
        await client.call("GET", "/keys/k-1")


@served
async def test_latency_of_a_partner(client: Client) -> None:
    loop = asyncio.get_running_loop()
    body = {"latency": {"*": 0, "bench": 0.05}}
    shown = (await client.call("PUT", "/faults", body)).body["latency"]
    assert (shown["bench"], shown["payment"]) == (0.05, 0)
    start = loop.time()
    await bench_call(client)
    assert loop.time() - start >= 0.05
    await client.call("PUT", "/faults", {"latency": {"bench": 60}})
    assert (await client.post("/bench/calls?latency=0.001", {})).status == 201
    bad = await client.post("/bench/calls?latency=long", {})
    assert (bad.status, bad.body["error"]["field"]) == (400, "latency")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({}, "faults"),
        ({"faults": {}}, "faults"),
        ({"fault": []}, "fault"),
        ({"faults": [], "latency": 5}, "latency"),
        ({"faults": [], "latency": {"bank": 5}}, "latency.bank"),
        ({"faults": [], "latency": {"bench": -1}}, "latency.bench"),
    ],
)
@served
async def test_invalid_script_is_refused_by_field(client: Client, body: Any, field: str) -> None:
    reply = await client.call("PUT", "/faults", body)
    assert (reply.status, reply.body["error"]["field"]) == (400, field)


@served
async def test_faults_are_added_and_cleared(client: Client) -> None:
    first = await client.call("POST", "/faults", {"fault": "status", "times": 1})
    second = await client.call("POST", "/faults", {"fault": "html"})
    assert (first.status, second.status) == (201, 201)
    assert (await bench_call(client)).status == 500
    assert (await bench_call(client)).headers["Content-Type"].startswith("text/html")
    assert [fault["id"] for fault in (await client.get("/faults"))["faults"]] == [1, 2]
    assert (await client.call("DELETE", "/faults")).body["faults"] == []
    assert (await bench_call(client)).status == 201


def test_restart_keeps_the_start_of_a_fault(tmp_path: Path) -> None:
    began: list[float] = []

    async def first(client: Client) -> None:
        await client.faults({"fault": "down"})
        began.append(client.sandbox.script.faults[0].since)
        await client.call("POST", "/faults", {"fault": "slow"})

    async def then(client: Client) -> None:
        earlier, later = client.sandbox.script.faults
        assert earlier.since == began[0] <= later.since

    restarted(tmp_path, first, then)
