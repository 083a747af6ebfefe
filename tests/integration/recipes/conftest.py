"""The code of docs/use/recipes.md as it stands, with a bank that its own agent calls."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from orchestration import registry
from orchestration.api import receive_status
from sasweb.stack.folders import PROJECT
from tests.support.markdown import blocks
from tests.support.violations import violations

PAGE = PROJECT / "docs" / "use" / "recipes.md"
SECRET = b"of the bank"


class BankService(ThreadingHTTPServer):
    """A bank whose charges are pending until it says otherwise; a key has one charge."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), BankRequest)
        self.charges = {}
        self.asked = 0
        self.refunds = []
        self.ends = "pending"  # what becomes of charges

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def part(self, after):
        """Return a part: there are three."""
        number = int(after or 0) + 1
        return {"count": 2 * number, "next": str(number) if number < 3 else ""}

    def charge(self, key):
        return {"id": self.charges.setdefault(key, f"ch_{len(self.charges)}"), "status": self.ends}


class BankRequest(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked += 1
        if self.path.startswith("/parts"):
            self._answer(self.server.part(self.path.rpartition("=")[2]))
            return
        key = self.path.rpartition("/")[2].replace("%3A", ":")
        known = key in self.server.charges
        self._answer(self.server.charge(key) if known else {"code": "no_such_charge"}, known)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/refunds":
            self.server.refunds.append(body["key"])
            self._answer({})
        else:
            self._answer(self.server.charge(self.headers["Idempotency-Key"]))

    def _answer(self, answer, known=True):
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture
def bank():
    with BankService() as service:
        thread = Thread(target=service.serve_forever)
        thread.start()
        yield service
        service.shutdown()
        thread.join()


@pytest.fixture
def page(own_schedules, monkeypatch, settings):
    """The names of the page; what it registers is forgotten afterwards."""
    for table in ("agents", "workflows", "receivers", "schedules"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    monkeypatch.setattr(registry, "_places", {})  # other tests declare agents of these names
    monkeypatch.setattr(registry, "registered_twice", [])
    for partner in ("BANK", "CARRIER", "COURIER", "MAIL"):
        setattr(settings, f"{partner}_URL", "http://127.0.0.1:9")
    settings.BANK_SECRET = SECRET
    names = {"__name__": "recipes", "received": []}
    receive_status("recipes", names["received"].extend)
    exec(compile("\n".join(blocks(PAGE.read_text(), "python")), PAGE.name, "exec"), names)
    # only tests of schedules let them submit tasks
    names["scheduled"] = dict(registry.schedules)
    registry.schedules.clear()
    return names


@pytest.fixture
def shop(page, request):
    """A run of the page's workflows, which ends with the audit; its agents are registered before."""
    yield request.getfixturevalue("run")
    assert violations() == []


@pytest.fixture
def real_bank(page, bank, shop):
    """Have the page's own agents call the bank."""
    for name in ("Bank", "ConfirmedBank", "AskedBank", "ImportInParts"):
        shop.real(page[name].name, type(name, (page[name],), {"base_url": bank.url}))
    return bank
