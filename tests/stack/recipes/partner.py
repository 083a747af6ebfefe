"""A bank and two carriers that answer late, not at all, twice, or in contradiction."""

import hmac
import json
import random
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import unquote

SECRET = b"of the bank"
LOST = 0.15  # of the answers, once the call has had its effect
FORGIVEN = 3  # only the answers to the first calls under a key are lost


class Partner(ThreadingHTTPServer):
    """What the partners did: charges and parcels by key, and which of them were taken back."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.webhook_port = 0
        self.charges: dict[str, dict[str, str]] = {}
        self.parcels: dict[str, str] = {}  # the carrier of each
        self.taken_back: set[str] = set()
        self.questions: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.chance = random.Random(7)  # noqa: S311 - faults, not secrets
        self.lock = Lock()
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def standing(self) -> set[str]:
        """Return the keys whose effect stands."""
        with self.lock:
            charged = {
                key
                for key, charge in self.charges.items()
                if kind_of(charge["order"]) != "declined"
            }
            return (charged | self.parcels.keys()) - self.taken_back

    def report(self, order: str, code: str = "", times: int = 1) -> None:
        """Report the end of an order's charge to the shop's webhook, once or several times."""
        with self.lock:
            (charge,) = [known for known in self.charges.values() if known["order"] == order]
        event = {"id": f"{order} {code}", "order": order, "paid": not code, "code": code}
        event |= {"charge": {"id": charge["id"], "status": "paid"}}
        body = json.dumps(event).encode()
        headers = {"Signature": hmac.new(SECRET, body, "sha256").hexdigest()}
        for _ in range(times):
            connection = HTTPConnection("127.0.0.1", self.webhook_port, timeout=10)
            connection.request("POST", "/bank_reports", body, headers)
            status = connection.getresponse().status
            connection.close()
            assert status == 202, status

    def report_soon(self, order: str, *codes: str, times: int = 1) -> None:
        """Report in order, beside the answer to the call."""

        def reports() -> None:
            for code in codes:
                self.report(order, code, times)

        Thread(target=reports, daemon=True).start()


class Request(BaseHTTPRequestHandler):
    server: Partner

    def do_GET(self) -> None:
        if self.path.startswith("/a/parts"):
            self.part(self.path.rpartition("=")[2])
            return
        key = unquote(self.path.rpartition("/")[2])
        with self.server.lock:
            charge = self.server.charges.get(key)
            count = self.server.questions[key] = self.server.questions.get(key, 0) + 1
        if charge is None:
            self.answer({"code": "no_such_charge"}, 404)
            return
        kind = kind_of(charge["order"])
        paid = kind in {"plain", "lost"} or (kind == "ready" and count > 1)
        self.answer({"id": charge["id"], "status": "paid" if paid else "pending"})

    def part(self, after: str) -> None:
        """Answer with a part: there are five."""
        number = int(after or 0) + 1
        self.answer({"count": 2 * number, "next": str(number) if number < 5 else ""})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, partner, what = self.path.split("/")
        key = self.headers["Idempotency-Key"]
        with self.server.lock:
            self.server.calls[key] = self.server.calls.get(key, 0) + 1
            first = self.server.calls[key] == 1
            lost = self.server.calls[key] <= FORGIVEN and self.server.chance.random() < LOST
        if what in {"refunds", "cancellations"}:
            with self.server.lock:
                self.server.taken_back.add(body["key"])
            self.answer({}, lost=lost)
        elif what == "parcels":
            self.book(partner, body["to"], key, first=first, lost=lost)
        else:
            self.charge(body["order"], key, first=first, lost=lost)

    def book(self, partner: str, to: str, key: str, *, first: bool, lost: bool) -> None:
        """Book a parcel; the first carrier goes to no island, and is unclear about it at first."""
        if partner == "a" and to in {"island", "fog"}:
            refusal = {"error": {"code": "not_served", "message": "not served"}}
            self.answer(refusal, 422, lost=to == "fog" and first)
            return
        with self.server.lock:
            self.server.parcels[key] = partner
        self.answer({"id": key[-20:]}, lost=lost)

    def charge(self, order: str, key: str, *, first: bool, lost: bool) -> None:
        """Charge an order; report as it says, before the answer or after it."""
        with self.server.lock:
            charge = {"id": f"ch {key}", "order": order}
            self.server.charges.setdefault(key, charge)
        kind = kind_of(order)
        if first and kind == "early":
            self.server.report(order)
        reports: dict[str, Any] = {"contradict": ("", "declined"), "declined": ("declined", "")}
        self.answer(
            {"id": charge["id"], "status": "paid" if kind == "plain" else "pending"}, lost=lost
        )
        if first and kind == "twice":
            self.server.report_soon(order, "", times=3)
        elif first and kind in reports:
            self.server.report_soon(order, *reports[kind])

    def answer(self, answer: dict[str, Any], status: int = 200, *, lost: bool = False) -> None:
        """Answer, or end the connection without a word."""
        if lost:
            self.close_connection = True
            return
        body = json.dumps(answer).encode()
        with suppress(
            ConnectionError
        ):  # its agent was killed: what was done is reported nevertheless
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def kind_of(order: str) -> str:
    """Return what the bank does with an order: "confirmed/early-1" is reported early."""
    workflow, _, name = order.partition("/")
    kind = name.rpartition("-")[0]
    return kind if workflow in {"confirmed", "asked"} else "plain"
