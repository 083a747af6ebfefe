"""The payment agent against localstripe, a stand-in for Stripe that others wrote.

It has no idempotency keys, no codes of refusals but of cards, and refuses `error_on_requires_action`; the
sandbox has all of these (test_contract.py).
"""

import http.client
import json
import re
import subprocess
import sys
from urllib.parse import urlencode

import pytest

from orchestration.testing.contract import AgentContract
from orders.agents.payment import Payment

KEY = "sk_test_" + "12345"
# Its own command listens on IPv6, and keeps what it has in /tmp.
SERVER = """
from aiohttp import web
from localstripe.resources import store
from localstripe.server import app

store.dump_to_disk = lambda: None
web.run_app(app, host="127.0.0.1", port=0)
"""


@pytest.fixture(scope="module")
def port():
    command = [sys.executable, "-u", "-W", "ignore", "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            lines = (re.search(r"http://127.0.0.1:(\d+)", line) for line in server.stdout)
            yield int(next(filter(None, lines))[1])
        finally:
            server.kill()


class TestStripe(AgentContract):
    """What the contract asks of any agent, as far as the stand-in goes."""

    action, undo = "authorize", "void"
    payload = {
        "order": "o-1",
        "amount": 1900,
        "currency": "EUR",
        "payment_method": "pm_card_visa",
    }
    refused_payload = {**payload, "payment_method": "pm_card_chargeCustomerFail"}
    refusal = "card_declined"
    # it makes a second payment under the same key, and has no code for what is canceled already;
    # like Stripe, it cannot be asked about a key
    test_same_key_twice_has_one_effect = None
    test_undo_takes_back_and_may_be_repeated = None
    test_undo_of_what_is_undone_is_done = None
    test_look_up_finds_what_was_done = test_look_up_of_an_unknown_key_finds_nothing = None

    @pytest.fixture(autouse=True)
    def _serve(self, port, settings):
        settings.PAYMENT_SECRET_KEY = KEY
        base = {"base_url": f"http://127.0.0.1:{port}"}
        members = base | {"of_customer": lambda _self, _payload: {}}
        self.agent = type("Payment", (Payment,), members)
        self.port = port

    def undo_payload(self, key, result):
        return {"payment": result["id"]}

    def stripe(self, method, path, **form):
        """Send it a request as another program does."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            known = {"Authorization": f"Bearer {KEY}"}
            known["Content-Type"] = "application/x-www-form-urlencoded"
            connection.request(method, f"/v1/{path}", urlencode(form), known)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def look_up(self, payment):
        return self.stripe("GET", f"payment_intents/{payment}")

    def done(self, action, payload):
        reply = self.perform(action, payload, f"key-{action}")
        assert reply.outcome == "done", reply
        return reply.result

    def test_authorization_holds_the_amount(self):
        result = self.done("authorize", self.payload)
        intent = self.look_up(result["id"])
        assert (intent["status"], intent["amount"]) == ("requires_capture", 1900)
        assert (intent["currency"], intent["metadata"]) == ("eur", {"order": "o-1"})

    def test_capture_takes_it(self):
        payment = self.done("authorize", self.payload)["id"]
        captured = self.done("capture", {"payment": payment, "amount": 1900})
        assert captured == {"id": payment, "status": "succeeded"}
        assert self.look_up(payment)["latest_charge"]["captured"]

    def test_void_cancels_what_is_not_captured(self):
        payment = self.done("authorize", self.payload)["id"]
        assert self.done("void", {"payment": payment}) == {"id": payment, "status": "canceled"}
        assert self.look_up(payment)["status"] == "canceled"

    def test_refund_gives_back_what_is_captured(self):
        payment = self.done("authorize", self.payload)["id"]
        self.done("capture", {"payment": payment, "amount": 1900})
        assert self.done("refund", {"payment": payment})["status"] == "succeeded"
        assert self.look_up(payment)["latest_charge"]["amount_refunded"] == 1900

    def test_bank_that_asks_the_customer_is_waited_for(self):
        card = {"number": "4000002500003155", "exp_month": "12", "exp_year": "2035", "cvc": "123"}
        form = {f"card[{name}]": value for name, value in card.items()}
        method = self.stripe("POST", "payment_methods", type="card", **form)["id"]
        reply = self.perform("authorize", {**self.payload, "payment_method": method}, "key")
        assert (reply.outcome, reply.result["status"]) == ("later", "requires_action")
        assert reply.wait.id == reply.result["id"]

    def test_wrong_key_of_the_account_leaves_the_payment_undone(self, settings):
        settings.PAYMENT_SECRET_KEY = "none"
        reply = self.perform("authorize", self.payload, "key")
        assert (reply.outcome, reply.code) == ("transient", "http_401")

    def test_unknown_parameter_is_refused(self):
        self.agent = type("Payment", (Payment,), {"base_url": self.agent.base_url})
        reply = self.perform("authorize", self.payload, "key")
        assert (reply.outcome, reply.code) == ("rejected", "http_400")
        assert "error_on_requires_action" in reply.message
