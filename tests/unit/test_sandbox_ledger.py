"""The ledger as it is read, and as it survives: restarts, kill -9, a torn line."""

import asyncio
import http.client
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError

from sandbox.journal import Journal, JournalError
from sandbox.server import Sandbox
from tests.unit.test_sandbox_kit import CHARGE, MAIL, Client, running, served

ROOT = Path(__file__).resolve().parents[2]

# --- reading


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
        "object": ref,
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
async def test_page_and_health(client: Client) -> None:
    assert (await client.get("/healthz"))["status"] == "ok"
    assert b"None: every partner works" in (await client.call("GET", "/")).raw
    await client.faults({"fault": "slow", "partner": "mail", "key": "<b>"})
    page = await client.call("GET", "/")
    assert page.headers["Content-Type"].startswith("text/html")
    for text in (b"<td>slow</td>", b"key=&lt;b&gt;", b'<a href="/ledger">', b"<td>shipping</td>"):
        assert text in page.raw


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


# --- surviving


def restarted(folder: Path, first: Any, then: Any) -> None:
    async def inside() -> None:
        async with running(folder) as client:
            await first(client)
        async with running(folder) as client:
            await then(client)

    asyncio.run(inside())


def test_restart_keeps_all_state(tmp_path: Path) -> None:
    kept: dict[str, Any] = {}

    async def look(client: Client) -> dict[str, Any]:
        paths = ("/ledger", "/ledger/summary", "/inventory/stock", "/faults", "/mail/messages")
        return {path: await client.get(path) for path in paths}

    async def first(client: Client) -> None:
        await client.stocked()
        reservation = await client.reserved("k-r", 2)
        await client.made("/shipping/shipments", {"order": "o-1", "reservation": reservation})
        await client.reserved("k-u")
        await client.made("/inventory/undo", {"key": "k-u"})
        intent = await client.made("/v1/payment_intents", CHARGE, "k-p")
        await client.made(f"/v1/payment_intents/{intent}/capture", None, "k-c")
        await client.made("/v1/refunds", {"payment_intent": intent, "amount": "5"})
        await client.made("/mail/messages", MAIL)
        await client.post("/bench/undo", {"key": "never-done"})
        await client.post("/v1/payment_intents", CHARGE | {"amount": "-"}, "k-bad")
        kept["first"] = (await client.post("/v1/payment_intents", CHARGE, "k-p")).raw
        script = [{"fault": "status", "partner": "bench", "times": 3, "skip": 1, "key": "b-*"}]
        await client.call("PUT", "/faults", {"faults": script, "latency": {"mail": 0.02}})
        for _ in range(2):
            await client.post("/bench/calls", {}, "b-1")
        kept["state"] = await look(client)

    async def then(client: Client) -> None:
        state = await look(client)
        state["/faults"]["latency"] = kept["state"]["/faults"]["latency"]  # the kit sets it to 0
        assert state == kept["state"]
        assert (await client.post("/v1/payment_intents", CHARGE, "k-p")).raw == kept["first"]
        assert (await client.post("/bench/calls", {}, "never-done")).code == "already_undone"
        statuses = [(await client.post("/bench/calls", {}, "b-2")).status for _ in range(3)]
        assert statuses == [500, 500, 201]
        assert (await client.call("POST", "/faults", {"fault": "down"})).body["id"] == 2

    restarted(tmp_path, first, then)


@pytest.mark.parametrize("torn", [b'["e",2,17', b'["e"]', b"\xff"])
def test_torn_last_line_is_dropped(tmp_path: Path, torn: bytes) -> None:
    async def first(client: Client) -> None:
        await client.made("/bench/calls", {}, "k-1")

    async def then(client: Client) -> None:
        assert [entry["key"] for entry in await client.entries()] == ["k-1"]
        await client.made("/bench/calls", {}, "k-2")

    async def last(client: Client) -> None:
        assert [entry["key"] for entry in await client.entries()] == ["k-1", "k-2"]

    asyncio.run(_once(tmp_path, first))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(torn)
    restarted(tmp_path, then, last)


async def _once(folder: Path, check: Any) -> None:
    async with running(folder) as client:
        await check(client)


@pytest.mark.parametrize("content", ["other\n", '["sandbox",1]\n{}\n', '["sandbox",1]\n[\n[]\n'])
def test_foreign_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(content)
    journal = Journal(path)
    with pytest.raises(JournalError, match=r"Line \d of"):
        list(journal.rows())
    journal.close()
    assert path.read_text() == content


@pytest.mark.parametrize("row", [["e", 1], ["k", "unknown"], ["s", [1], [{"fault": "x"}], {}]])
def test_senseless_row_is_named(tmp_path: Path, row: list[Any]) -> None:
    (tmp_path / "journal.jsonl").write_text(f'["sandbox",1]\n{json.dumps(row)}\n')
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(JournalError, match=r"Line 2 of"):
        Sandbox(journal)
    journal.close()


@served
async def test_full_disk_is_reported_and_harmless(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def half(file: int, data: bytes) -> int:
        return write(file, data[: len(data) // 2])

    with monkeypatch.context() as patch:
        patch.setattr("sandbox.journal.os.write", half)
        reply = await client.post("/bench/calls", {}, "k-1")
    assert (reply.status, reply.code) == (500, "ledger_failed")
    assert await client.entries() == []
    assert (await client.post("/bench/calls", {}, "k-1")).status == 201


# --- the process


@contextmanager
def process(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "sandbox", "--port", "0", "--data", str(folder), *options]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            assert started.stdout is not None
            line = started.stdout.readline()
            yield started, int(line.rpartition(":")[2].strip("/\n") or 0)
        finally:
            started.kill()


def send(port: int, method: str, path: str, key: str = "", body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Idempotency-Key": key} if key else {}
    try:
        connection.request(method, path, json.dumps(body or {}), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_kill_9_loses_nothing(tmp_path: Path) -> None:
    with process(tmp_path) as (started, port):
        made = [send(port, "POST", "/bench/calls", f"k-{n}", {"order": "o"}) for n in range(20)]
        send(port, "PUT", "/faults", "", {"faults": [{"fault": "status", "key": "bad"}]})
        started.kill()
        assert started.wait(10) == -signal.SIGKILL
    with process(tmp_path) as (started, port):
        ledger = send(port, "GET", "/ledger")[1]
        assert [entry["object"] for entry in ledger["entries"]] == [
            reply["id"] for _, reply in made
        ]
        again = [send(port, "POST", "/bench/calls", f"k-{n}", {"order": "o"}) for n in range(20)]
        assert again == made
        assert send(port, "GET", "/ledger")[1]["entries"][-1]["requests"] == 2
        assert send(port, "POST", "/bench/calls", "bad")[0] == 500


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_promptly_even_with_hanging_requests(
    tmp_path: Path, number: signal.Signals
) -> None:
    with process(tmp_path) as (started, port):
        send(port, "PUT", "/faults", "", {"faults": [{"fault": "timeout", "seconds": 600}]})
        hanging = http.client.HTTPConnection("127.0.0.1", port)
        hanging.request("POST", "/bench/calls", "{}", {"Idempotency-Key": "k-1"})
        while send(port, "GET", "/faults")[1]["faults"][0]["fired"] == 0:
            pass
        started.send_signal(number)
        assert started.wait(3) == 0
        hanging.close()
        assert started.stderr is not None
        assert started.stderr.read() == ""


def test_busy_port_is_named(tmp_path: Path) -> None:
    with (
        process(tmp_path / "a") as (_, port),
        process(tmp_path / "b", "--port", str(port)) as (
            second,
            __,
        ),
    ):
        assert second.wait(10) == 1
        assert second.stderr is not None
        (line,) = second.stderr.read().splitlines()
        assert f"port {port}" in line


def test_folder_in_use_is_named(tmp_path: Path) -> None:
    with process(tmp_path), process(tmp_path) as (second, _):
        assert second.wait(10) == 1
        assert second.stderr is not None
        (line,) = second.stderr.read().splitlines()
        assert str(tmp_path) in line
