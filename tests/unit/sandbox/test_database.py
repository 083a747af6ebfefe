"""The database across restarts, and with foreign files."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sandbox.database import Database, LedgerFileError
from tests.support.sandbox import CHARGE, MAIL, Client, restarted


def test_restart_keeps_all_state(tmp_path: Path) -> None:
    past: dict[str, Any] = {}

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
        past["first"] = (await client.post("/v1/payment_intents", CHARGE, "k-p")).raw
        script = [{"fault": "status", "partner": "bench", "times": 3, "skip": 1, "key": "b-*"}]
        await client.call("PUT", "/faults", {"faults": script, "latency": {"mail": 0.02}})
        for _ in range(2):
            await client.post("/bench/calls", {}, "b-1")
        past["state"] = await look(client)

    async def then(client: Client) -> None:
        state = await look(client)
        state["/faults"]["latency"] = past["state"]["/faults"]["latency"]  # `running` sets it to 0
        assert state == past["state"]
        assert (await client.post("/v1/payment_intents", CHARGE, "k-p")).raw == past["first"]
        assert (await client.post("/bench/calls", {}, "never-done")).code == "already_undone"
        statuses = [(await client.post("/bench/calls", {}, "b-2")).status for _ in range(3)]
        assert statuses == [500, 500, 201]
        assert (await client.call("POST", "/faults", {"fault": "down"})).body["id"] == 2

    restarted(tmp_path, first, then)


@pytest.mark.parametrize("fill", ["text", "table", "version"])
def test_foreign_file_is_refused_and_kept(tmp_path: Path, fill: str) -> None:
    path = tmp_path / "ledger.sqlite3"
    if fill == "text":
        path.write_text("not a database, " * 100)
    else:
        Database(path).close()
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA user_version = 99")
            other.execute("PRAGMA application_id = 1" if fill == "table" else "CREATE TABLE t (i)")
            other.commit()
    before = path.read_bytes()
    with pytest.raises(LedgerFileError, match=re.escape(str(path))):
        Database(path)
    assert path.read_bytes() == before
