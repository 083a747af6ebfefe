"""Which requests the fault script befalls, and how strictly it is read."""

import asyncio
from typing import Any

import pytest
from aiohttp import ClientError

from tests.unit.test_sandbox_kit import CHARGE, Client, Reply, served

SOON = {"seconds": 0.01}


async def call(client: Client, key: str = "k-1", **body: Any) -> Reply:
    return await client.post("/bench/calls", {"order": "o-1"} | body, key)


async def done(client: Client, key: str = "k-1") -> bool:
    return (await client.call("GET", f"/keys/{key}")).status == 200


async def fired(client: Client) -> int:
    return int((await client.get("/faults"))["faults"][0]["fired"])


# --- which requests a fault befalls


@served
async def test_partner_action_key_and_order_select(client: Client) -> None:
    await client.stocked()
    await client.faults({"fault": "status", "partner": "inventory", "action": "release"})
    ref = await client.reserved()
    assert (await client.post(f"/inventory/reservations/{ref}/release", {})).status == 500
    await client.faults({"fault": "status", "key": "charge-*"})
    assert (await call(client, "charge-1")).status == 500
    assert (await call(client, "other-1")).status == 201
    await client.faults({"fault": "status", "order": "o-[89]"})
    assert (await call(client, "k-8", order="o-8")).status == 500
    assert (await call(client, "k-7", order="o-7")).status == 201
    assert (await client.post("/bench/calls", {})).status == 201


@served
async def test_order_is_known_where_only_an_id_or_key_is_sent(client: Client) -> None:
    ref = await client.made("/v1/payment_intents", CHARGE, "k-a")
    await client.faults({"fault": "status", "order": "o-1"})
    assert (await client.post(f"/v1/payment_intents/{ref}/capture")).status == 500
    assert (await client.post("/v1/refunds", {"payment_intent": ref})).status == 500
    assert (await client.post("/payment/undo", {"key": "k-a"})).status == 500


@served
async def test_times_and_skip(client: Client) -> None:
    await client.faults({"fault": "status", "times": 2, "skip": 1})
    statuses = [(await call(client, f"k-{number}")).status for number in range(5)]
    assert statuses == [201, 500, 500, 201, 201]
    (fault,) = (await client.get("/faults"))["faults"]
    assert (fault["passed"], fault["fired"]) == (1, 2)


@served
async def test_probability(client: Client) -> None:
    await client.faults({"fault": "status", "probability": 0})
    assert (await call(client)).status == 201
    await client.faults({"fault": "status", "probability": 0.5})
    statuses = {(await call(client, f"p-{number}")).status for number in range(60)}
    assert statuses == {201, 500}


@served
async def test_reads_fail_only_when_asked_or_down(client: Client) -> None:
    await call(client)
    await client.faults({"fault": "status", "partner": "bench"})
    assert await done(client)
    await client.faults({"fault": "status", "partner": "bench", "action": "read"})
    assert (await client.call("GET", "/keys/k-1")).status == 500
    await client.faults({"fault": "down", "partner": "payment"})
    assert await done(client)
    for path in ("/v1/payment_intents/pi_1", "/keys/unknown?partner=payment"):
        with pytest.raises(ClientError):
            await client.call("GET", path)
    await client.faults({"fault": "reject", "action": "read"})
    assert (await client.call("GET", "/keys/k-1")).status == 422
    await client.faults({"fault": "late_effect", "action": "read"})
    with pytest.raises(ClientError):
        await client.call("GET", "/keys/k-1")


@served
async def test_base_latency(client: Client) -> None:
    loop = asyncio.get_running_loop()
    body = {"latency": {"*": 0, "bench": 0.05}}
    shown = (await client.call("PUT", "/faults", body)).body["latency"]
    assert (shown["bench"], shown["payment"]) == (0.05, 0)
    start = loop.time()
    await call(client)
    assert loop.time() - start >= 0.05
    await client.call("PUT", "/faults", {"latency": {"bench": 60}})
    assert (await client.post("/bench/calls?latency=0.001", {})).status == 201
    bad = await client.post("/bench/calls?latency=long", {})
    assert (bad.status, bad.body["error"]["field"]) == (400, "latency")


# --- the script


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ("x", "faults[1]"),
        ({}, "faults[1].fault"),
        ({"fault": "timeouts"}, "faults[1].fault"),
        ({"fault": ["x"]}, "faults[1].fault"),
        ({"fault": "reset", "partner": "bank"}, "faults[1].partner"),
        ({"fault": "reset", "partner": "payment", "action": "reserve"}, "faults[1].action"),
        ({"fault": "reset", "action": "authorise"}, "faults[1].action"),
        ({"fault": "reset", "action": 1}, "faults[1].action"),
        ({"fault": "reset", "times": 0}, "faults[1].times"),
        ({"fault": "reset", "times": True}, "faults[1].times"),
        ({"fault": "reset", "skip": -1}, "faults[1].skip"),
        ({"fault": "reset", "key": 5}, "faults[1].key"),
        ({"fault": "reset", "order": ""}, "faults[1].order"),
        ({"fault": "reset", "probability": 1.1}, "faults[1].probability"),
        ({"fault": "reset", "seconds": 1}, "faults[1].seconds"),
        ({"fault": "slow", "seconds": "5"}, "faults[1].seconds"),
        ({"fault": "slow", "second": 5}, "faults[1].second"),
        ({"fault": "status", "status": 200}, "faults[1].status"),
        ({"fault": "reject", "status": 500}, "faults[1].status"),
        ({"fault": "reject", "code": 7}, "faults[1].code"),
        ({"fault": "too_many_requests", "retry_after": 1.5}, "faults[1].retry_after"),
    ],
)
@served
async def test_bad_fault_is_named_and_nothing_changes(
    client: Client, fault: Any, field: str
) -> None:
    before = (await client.faults({"fault": "down", "key": "never"})).body
    reply = await client.faults({"fault": "reset"}, fault)
    assert (reply.status, reply.body["error"]["field"]) == (400, field)
    assert field in reply.body["error"]["message"]
    assert (await client.get("/faults")) == before
    alone = await client.call("POST", "/faults", fault)
    assert alone.body["error"]["field"] == field.replace("faults[1]", "fault")


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
async def test_bad_script_is_named(client: Client, body: Any, field: str) -> None:
    reply = await client.call("PUT", "/faults", body)
    assert (reply.status, reply.body["error"]["field"]) == (400, field)


@served
async def test_spelling_is_suggested(client: Client) -> None:
    reply = await client.faults({"fault": "time_out"})
    assert "did you mean 'timeout'?" in reply.body["error"]["message"]


@served
async def test_faults_are_added_and_cleared(client: Client) -> None:
    first = await client.call("POST", "/faults", {"fault": "status", "times": 1})
    second = await client.call("POST", "/faults", {"fault": "html"})
    assert (first.status, second.status) == (201, 201)
    assert (await call(client)).status == 500
    assert (await call(client)).headers["Content-Type"].startswith("text/html")
    assert [fault["id"] for fault in (await client.get("/faults"))["faults"]] == [1, 2]
    assert (await client.call("DELETE", "/faults")).body["faults"] == []
    assert (await call(client)).status == 201
