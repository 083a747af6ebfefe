"""The ledger as it is read, and the other pages that are no partner's."""

import io
from pathlib import Path

import pytest
from aiohttp import ClientError

from sandbox.partner import Call
from tests.unit.test_sandbox_kit import CHARGE, MAIL, Client, served

ROOT = Path(__file__).resolve().parents[2]


@served
async def test_entries_are_filtered_and_paged(client: Client) -> None:
    for number in range(5):
        await client.made("/bench/calls", {"order": f"o-{number % 2}"}, f"b-{number}")
    await client.made("/mail/messages", MAIL, "m-1")
    page = await client.get("/ledger?limit=2")
    assert [entry["seq"] for entry in page["entries"]] == [1, 2]
    assert page["next"] == 2
    page = await client.get("/ledger?after=2&limit=4")
    assert [entry["seq"] for entry in page["entries"]] == [3, 4, 5, 6]
    assert page["next"] is None
    assert [entry["key"] for entry in await client.entries("partner=mail")] == ["m-1"]
    assert [entry["seq"] for entry in await client.entries("order=o-1")] == [2, 4, 6]
    assert [entry["seq"] for entry in await client.entries("order=o-1&partner=bench&after=2")] == [
        4
    ]
    assert [entry["seq"] for entry in await client.entries("key=b-3&order=o-1")] == [4]
    assert await client.entries("key=b-3&order=o-0") == []
    for query in ("limit=0", "after=-1", "limit=x"):
        bad = await client.call("GET", f"/ledger?{query}")
        assert (bad.status, bad.body["error"]["field"]) == (400, query.partition("=")[0])


@pytest.mark.parametrize("limit", [500, 501, 1200, 2000])
@served
async def test_long_pages_hold_every_entry_once(client: Client, limit: int) -> None:
    do_nothing = Call("bench", "call", "", "o-1", None, {}, "")
    for number in range(1201):
        client.sandbox.ledger.perform(do_nothing._replace(key=f"k-{number}"))
    found, after, pages = [], 0, 0
    while after is not None:
        page = await client.get(f"/ledger?after={after}&limit={limit}")
        found += page["entries"]
        after, pages = page["next"], pages + 1
    assert [entry["seq"] for entry in found] == list(range(1, 1202))
    assert [entry["key"] for entry in found] == [f"k-{number}" for number in range(1201)]
    assert pages == -(-1201 // limit)


@served
async def test_calls_are_answered_while_a_long_page_is_read(client: Client) -> None:
    do_nothing = Call("bench", "call", "", "o-1", None, {}, "")
    for number in range(10_000):
        client.sandbox.ledger.perform(do_nothing._replace(key=f"k-{number}"))
    async with client.session.get("/ledger?limit=10000") as page:
        await page.content.readany()  # the head has come, the tail stays in the pipe
        await client.made("/bench/calls", {}, "other")
        assert not page.content.is_eof()
        rest = await page.content.read()
    assert rest.endswith(b'],"next":null}')


@served
async def test_entry_tells_who_what_and_when(client: Client) -> None:
    ref = await client.made("/v1/payment_intents", CHARGE, "k-1")
    (entry,) = await client.entries()
    assert entry.pop("at").endswith("Z")
    assert entry == {
        "seq": 1,
        "partner": "payment",
        "action": "authorize",
        "effect": "authorize",
        "key": "k-1",
        "order": "o-1",
        "amount": 1999,
        "currency": "eur",
        "ref": ref,
        "parent": None,
        "target": None,
        "status": "done",
        "http_status": 200,
        "error": None,
        "requests": 1,
    }


@served
async def test_summary_adds_up_per_order(client: Client) -> None:
    await client.stocked()
    ref = await client.reserved()
    await client.made("/shipping/shipments", {"order": "o-1", "reservation": ref})
    await client.made("/mail/messages", MAIL)
    intent = await client.made("/v1/payment_intents", CHARGE)
    await client.made(f"/v1/payment_intents/{intent}/cancel")
    await client.post(
        "/v1/payment_intents", CHARGE | {"payment_method": "pm_card_visa_chargeDeclined"}
    )
    for number in range(600):
        client.sandbox.ledger.by_order[f"x-{number}"] = []
    summary = await client.get("/ledger/summary")
    assert len(summary) == 601
    assert summary["o-1"] == {
        "currency": "eur",
        "authorized": 1999,
        "captured": 0,
        "cancelled": 1999,
        "refunded": 0,
        "reservations": 1,
        "releases": 0,
        "shipments": 1,
        "shipments_cancelled": 0,
        "mails": 1,
        "mails_recalled": 0,
        "calls": 0,
        "calls_voided": 0,
        "rejected": 1,
    }
    assert (await client.get("/ledger/summary?order=none"))["none"]["mails"] == 0


@served
async def test_reset_forgets_everything(client: Client) -> None:
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
async def test_health(client: Client) -> None:
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
async def test_unknown_paths_and_methods(
    client: Client, method: str, path: str, status: int
) -> None:
    reply = await client.call(method, path)
    assert reply.status == status
    assert reply.body["error"]["message"]


@served
async def test_oversized_body_is_refused(client: Client) -> None:
    body = io.BytesIO(b"x" * 1_100_000)
    headers = {"Idempotency-Key": "k-1"}
    async with client.session.post("/bench/calls", data=body, headers=headers) as response:
        assert response.status == 413
        assert (await response.json())["error"]["message"]
