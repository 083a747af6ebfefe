"""The pages of the ledger."""

import pytest

from sandbox.partner import Call
from tests.support.sandbox import CHARGE, MAIL, Client, served


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
async def test_long_pages_have_each_entry_once(client: Client, limit: int) -> None:
    do_nothing = Call("bench", "call", "", "o-1", None, {}, "")
    for number in range(1201):
        client.sandbox.ledger.perform(do_nothing._replace(key=f"k-{number}"))
    entries, after, pages = [], 0, 0
    while after is not None:
        page = await client.get(f"/ledger?after={after}&limit={limit}")
        entries += page["entries"]
        after, pages = page["next"], pages + 1
    assert [entry["seq"] for entry in entries] == list(range(1, 1202))
    assert [entry["key"] for entry in entries] == [f"k-{number}" for number in range(1201)]
    assert pages == -(-1201 // limit)


@served
async def test_calls_are_answered_while_a_long_page_is_read(client: Client) -> None:
    do_nothing = Call("bench", "call", "", "o-1", None, {}, "")
    for number in range(10_000):
        client.sandbox.ledger.perform(do_nothing._replace(key=f"k-{number}"))
    async with client.session.get("/ledger?limit=10000") as page:
        await page.content.readany()  # the start has arrived, the rest is not sent
        await client.made("/bench/calls", {}, "other")
        assert not page.content.is_eof()
        rest = await page.content.read()
    assert rest.endswith(b'],"next":null}')


@served
async def test_entry_has_all_fields(client: Client) -> None:
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
