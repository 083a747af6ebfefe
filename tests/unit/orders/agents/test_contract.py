"""The shop's agents keep the engine's contract with their services, here the sandbox."""

from uuid import uuid4

import pytest

from orchestration.testing.contract import AgentContract
from orders.agents.inventory import Inventory
from orders.agents.notification import Notification
from orders.agents.payment import Payment
from orders.agents.shipping import Courier, Shipping
from tests.support.sandbox import process, send

LINES = [{"sku": "mug", "quantity": 2}]
ADDRESS = {"name": "A", "street": "Elm 1", "postcode": "1", "city": "B", "country": "DE"}


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with process(tmp_path_factory.mktemp("sandbox")) as (_, port):
        send(port, "PUT", "/inventory/stock", body={"mug": 1000})
        yield port


class ShopContract(AgentContract):
    """The contract with the sandbox; each test has an order of its own."""

    declared = None
    counted = ("", "")  # totals of an order: what was done, what was taken back

    @pytest.fixture(autouse=True)
    def _serve(self, port):
        members = {"base_url": f"http://127.0.0.1:{port}"}
        self.agent = type(self.declared.__name__, (self.declared,), members)
        self.port = port
        self.order = uuid4().hex
        self.payload = self.new_payload()

    def standing(self, key, result):
        _, totals = send(self.port, "GET", f"/ledger/summary?order={self.order}")
        done, taken_back = (totals[self.order][name] or 0 for name in self.counted)
        return (done - taken_back) // self.payload.get("amount", 1)


class TestReservation(ShopContract):
    declared, action, undo = Inventory, "reserve", "release"
    refusal = "out_of_stock"
    counted = ("reservations", "releases")

    def new_payload(self):
        lots = [{"sku": "mug", "quantity": 10_000}]
        self.refused_payload = {"order": self.order, "lines": lots}
        return {"order": self.order, "lines": LINES}


class TestShipment(ShopContract):
    declared, action, undo = Shipping, "book", "cancel"
    refusal = "unknown_reservation"
    counted = ("shipments", "shipments_cancelled")

    def new_payload(self):
        body = {"order": self.order, "lines": LINES}
        _, made = send(self.port, "POST", "/inventory/reservations", uuid4().hex, body)
        known = {"order": self.order, "address": ADDRESS}
        self.refused_payload = {**known, "reservation": "none"}
        return {**known, "reservation": made["id"]}


class TestShipmentByCourier(TestShipment):
    declared = Courier

    def new_payload(self):
        return {**super().new_payload(), "warehouse": "main", "lines": LINES}


class TestLabel(ShopContract):
    declared, action, undo = Shipping, "label", "void"
    refusal = "label_exists"
    counted = ("labels", "labels_void")

    def new_payload(self):
        of = {"order": self.order, "return": "the first"}
        send(self.port, "POST", "/shipping/labels", uuid4().hex, of | {"order": uuid4().hex})
        self.refused_payload = of
        return {"order": self.order, "return": uuid4().hex}


class TestAuthorization(ShopContract):
    declared, action, undo = Payment, "authorize", "void"
    refusal = "generic_decline"
    counted = ("authorized", "cancelled")

    def new_payload(self):
        known = {"order": self.order, "amount": 1900, "currency": "EUR"}
        self.refused_payload = {**known, "payment_method": "pm_card_visa_chargeDeclined"}
        return {**known, "payment_method": "pm_card_visa"}

    def undo_payload(self, key, result):
        return {"payment": result["id"]}


class TestLetter(ShopContract):
    declared, action = Notification, "send"
    counted = ("mails", "mails_recalled")

    def new_payload(self):
        mail = {"subject": "Thanks", "text": "It is on its way."}
        return {"order": self.order, "to": "a@b.example", "mail": mail, "parcel": "TRK1"}
