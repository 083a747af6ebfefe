"""The examples of docs/use/testing.md are run as they stand."""

import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from orchestration import registry
from orchestration.testing.contract import AgentContract
from sasweb.stack.folders import PROJECT

PAGE = PROJECT / "docs" / "use" / "testing.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class FakeAirline(BaseHTTPRequestHandler):
    """The service that the page's contract speaks to."""

    @classmethod
    def start(cls):
        server = ThreadingHTTPServer(("127.0.0.1", 0), cls)
        server.url = f"http://127.0.0.1:{server.server_port}"
        server.holds = []
        Thread(target=server.serve_forever, daemon=True).start()
        STARTED.append(server)
        return server

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, holds = self.headers["Idempotency-Key"], self.server.holds
        status, answer = 200, {"id": key}
        if self.path == "/releases":
            holds[:] = [held for held in holds if held != body["key"]]
        elif body["flight"] == "none":
            status, answer = 400, {"error": {"code": "unknown_flight"}}
        elif key not in holds:
            holds.append(key)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *arguments):
        pass


STARTED = []


@pytest.fixture
def page(monkeypatch):
    """The page's names; what it registers is forgotten afterwards."""
    for table in ("agents", "workflows"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    blocks = BLOCK.findall(PAGE.read_text())
    names = {"FakeAirline": FakeAirline, "__name__": "documented"}
    exec(compile("\n".join(blocks), "docs/use/testing.md", "exec"), names)
    yield names
    while STARTED:
        server = STARTED.pop()
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "name",
    [
        "test_trip_is_booked",
        "test_a_call_in_doubt_is_repeated_under_its_key",
        "test_a_full_flight_is_an_error_and_what_was_held_is_released",
        "test_detour_is_not_needed_where_the_direct_flight_has_a_seat",
        "test_detour_is_held_where_the_direct_flight_is_full",
        "test_a_hold_that_the_airline_confirms_later",
        "test_seat_is_confirmed_by_a_webhook",
        "test_webhook_of_a_stranger_is_refused",
        "test_another_flight_back_is_taken_while_the_first_is_awaited",
    ],
)
def test_workflow_of_the_page(page, request, name):
    page[name](request.getfixturevalue("run"))  # after the page has registered its agent


def test_contract_of_the_page_is_collected_and_kept(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["orchestration.testing.plugin"]')
    service = f"from {__name__} import FakeAirline\n"
    (tmp_path / "test_page.py").write_text(service + "\n".join(BLOCK.findall(PAGE.read_text())))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", PROJECT / "pyproject.toml"),
            *("--rootdir", tmp_path, "-p", "no:cacheprovider", "-k", "TestHold", "-q", tmp_path),
        ],
        cwd=tmp_path, check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "DJANGO_SETTINGS_MODULE": "sasweb.settings"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed, 4 skipped" in done.stdout  # the airline cannot be asked


def test_contract_that_pytest_would_pass_over_is_refused():
    with pytest.raises(TypeError, match="fixture"):
        type("TestHold", (AgentContract,), {"__init__": lambda self: None})


def test_every_test_of_the_page_is_run(page):
    tests = {name for name in page if name.startswith("test_")}
    assert tests == set(test_workflow_of_the_page.pytestmark[0].args[1])
