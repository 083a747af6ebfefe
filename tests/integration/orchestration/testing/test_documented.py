"""The examples of docs/use/testing.md are run as they stand."""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from orchestration import registry
from sasweb.stack.folders import PROJECT

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
            holds[:] = [one for one in holds if one != body["key"]]
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
    blocks = BLOCK.findall((PROJECT / "docs/use/testing.md").read_text())
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
    ],
)
def test_workflow_of_the_page(page, request, name):
    page[name](request.getfixturevalue("run"))  # after the page has registered its agent


def test_contract_of_the_page(page):
    tests = [name for name in dir(page["TestHold"]) if name.startswith("test_")]
    assert len(tests) == 8
    for name in tests:
        if "look_up" not in name:  # the airline cannot be asked
            getattr(page["TestHold"](), name)()


def test_every_test_of_the_page_is_run(page):
    tests = {name for name in page if name.startswith("test_")}
    assert tests == set(test_workflow_of_the_page.pytestmark[0].args[1])
