"""The sandbox as a process: kill -9, signals, a port or a folder in use."""

import http.client
import os
import signal
import threading
from pathlib import Path

import pytest

from tests.support.sandbox import (
    process,
    send,
)


def test_kill_9_keeps_entries_counts_and_faults(tmp_path: Path) -> None:
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


def test_kill_9_under_load_keeps_acknowledged_effects_and_repeats_none(
    tmp_path: Path,
) -> None:
    """Clients repeat each key until it is acknowledged, across kills at any moment."""
    acknowledged: dict[str, str] = {}
    address: list[int] = []
    done = threading.Event()

    def call(lane: int) -> None:
        number = 0
        while not done.is_set():
            key = f"k-{lane}-{number}"
            try:
                status, body = send(address[0], "POST", "/bench/calls", key, {"order": key})
            except (OSError, http.client.HTTPException):
                continue
            assert status == 201
            acknowledged[key] = body["id"]
            number += 1

    lanes = [threading.Thread(target=call, args=(lane,)) for lane in range(4)]
    for _ in range(3):
        with process(tmp_path) as (started, port):
            address[:] = [port]
            for lane in lanes:
                if not lane.ident:
                    lane.start()
            expected = len(acknowledged) + 100
            while len(acknowledged) < expected:
                assert started.poll() is None
            started.kill()
            started.wait(10)
    done.set()
    for lane in lanes:
        lane.join(10)
    with process(tmp_path) as (_, port):
        entries = send(port, "GET", "/ledger?limit=10000")[1]["entries"]
        made = {entry["key"]: entry["ref"] for entry in entries}
        assert len(made) == len(entries)
        assert acknowledged.items() <= made.items()
        assert len(made) - len(acknowledged) <= len(lanes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_process_despite_hanging_requests(
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


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8900", 200),
        ("127.0.0.1", 200),
        ("[::1]:8900", 200),
        ("LOCALHOST", 200),
        ("rebound.example:8900", 421),
        ("localhost.rebound.example", 421),
        ("", 421),
    ],
)
def test_request_to_a_foreign_host_is_refused(tmp_path: Path, host: str, status: int) -> None:
    with process(tmp_path) as (_, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/mail/messages", headers={"Host": host})
        assert connection.getresponse().status == status
        connection.close()


def test_ledger_is_closed_to_other_users(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with process(tmp_path / "new" / "sandbox"):
            made = [tmp_path / "new" / "sandbox", *(tmp_path / "new" / "sandbox").iterdir()]
            assert len(made) > 1
            assert [path.name for path in made if path.stat().st_mode & 0o077] == []
    finally:
        os.umask(before)
