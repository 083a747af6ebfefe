"""What the sandbox keeps across restarts, kill -9, a torn line and a full disk."""

import asyncio
import http.client
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from sandbox.journal import Journal, JournalError
from sandbox.server import Sandbox
from tests.unit.test_sandbox_kit import CHARGE, MAIL, Client, process, running, send, served


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


def test_restart_keeps_how_long_a_fault_has_been_in_force(tmp_path: Path) -> None:
    began: list[float] = []

    async def first(client: Client) -> None:
        await client.faults({"fault": "down"})
        began.append(client.sandbox.script.faults[0].since)
        await client.call("POST", "/faults", {"fault": "slow"})

    async def then(client: Client) -> None:
        kept, later = client.sandbox.script.faults
        assert kept.since == began[0] <= later.since

    restarted(tmp_path, first, then)


def test_a_script_of_former_days_is_read(tmp_path: Path) -> None:
    row = ["s", [7], [{"fault": "down"}], {"mail": 0.5}]
    (tmp_path / "journal.jsonl").write_text(f'["sandbox",1]\n{json.dumps(row)}\n')

    async def then(client: Client) -> None:
        assert [fault.ref for fault in client.sandbox.script.faults] == [7]
        assert client.sandbox.script.faults[0].since > 0

    asyncio.run(_once(tmp_path, then))


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


def test_kill_9_loses_nothing(tmp_path: Path) -> None:
    with process(tmp_path) as (started, port):
        made = [send(port, "POST", "/bench/calls", f"k-{n}", {"order": "o"}) for n in range(20)]
        send(port, "PUT", "/faults", "", {"faults": [{"fault": "status", "key": "bad"}]})
        started.kill()
        assert started.wait(10) == -signal.SIGKILL
    with process(tmp_path) as (started, port):
        ledger = send(port, "GET", "/ledger")[1]
        assert [entry["ref"] for entry in ledger["entries"]] == [reply["id"] for _, reply in made]
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
