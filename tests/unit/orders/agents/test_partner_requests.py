"""The partners' agents: requests sent and replies read, with fixed answers."""

import asyncio

import pytest

from orchestration.api import Call, Rejected, Unknown
from orders.agents.inventory import Inventory
from orders.agents.notification import Notification
from orders.agents.payment import Payment
from orders.agents.shipping import Shipping


class Wire:
    """Replaces an agent's connection: records what is sent and gives a fixed answer."""

    def __init__(self, monkeypatch, agent, answer):
        self.agent, self.answer, self.sent = agent(), answer, []
        monkeypatch.setattr(self.agent, "post", self.post)

    async def post(self, call, path, *, body=None, form=None, expect=None):
        self.sent.append((path, form if body is None else body))
        return self.answer

    def ask(self, action, payload):
        call = Call(action=action, key="k", reference="r", payload=payload, timeout=1.0)
        return asyncio.run(getattr(self.agent, action)(call))


def test_reserve_sends_sku_and_quantity(monkeypatch):
    wire = Wire(monkeypatch, Inventory, {"id": "rsv_1", "status": "reserved"})
    line = {"sku": "a", "name": "Coffee", "unit_price": 950, "quantity": 2}
    assert wire.ask("reserve", {"order": "o", "lines": [line]}) == {"id": "rsv_1"}
    body = {"order": "o", "lines": [{"sku": "a", "quantity": 2}]}
    assert wire.sent == [("/inventory/reservations", body)]


def test_authorize_with_manual_capture(monkeypatch):
    wire = Wire(monkeypatch, Payment, {"id": "pi_1", "status": "requires_capture"})
    payload = {"order": "o", "amount": 950, "currency": "EUR", "payment_method": "pm_card_visa"}
    assert wire.ask("authorize", payload) == {"id": "pi_1", "status": "requires_capture"}
    path, form = wire.sent[0]
    assert path == "/v1/payment_intents"
    assert form == {
        "amount": "950",
        "currency": "eur",
        "payment_method": "pm_card_visa",
        "payment_method_types[]": "card",
        "capture_method": "manual",
        "confirm": "true",
        "expand[]": "latest_charge",
        "error_on_requires_action": "true",
        "metadata[order]": "o",
    }
    wire.ask("authorize", payload | {"page": "https://shop.test/orders/o/"})
    path, form = wire.sent[1]
    assert form["return_url"] == "https://shop.test/orders/o/"
    assert "error_on_requires_action" not in form


def test_capture_of_an_authorization(monkeypatch):
    wire = Wire(monkeypatch, Payment, {"id": "pi_1", "status": "succeeded"})
    wire.ask("capture", {"payment": "pi_1", "amount": 950})
    assert wire.sent == [("/v1/payment_intents/pi_1/capture", {"amount_to_capture": "950"})]


@pytest.mark.parametrize(
    ("action", "payload"),
    [
        (
            "authorize",
            {"order": "o", "amount": 1, "currency": "EUR", "payment_method": "pm_card_visa"},
        ),
        ("capture", {"payment": "pi_1", "amount": 1}),
    ],
)
def test_payment_in_an_unexpected_state_keeps_its_key(monkeypatch, action, payload):
    wire = Wire(monkeypatch, Payment, {"id": "pi_1", "status": "requires_confirmation"})
    with pytest.raises(Unknown) as caught:
        wire.ask(action, payload)
    assert caught.value.code == "unexpected_status"


@pytest.mark.parametrize(
    ("status", "error", "kind", "code"),
    [
        (
            402,
            {
                "type": "card_error",
                "code": "card_declined",
                "decline_code": "insufficient_funds",
                "message": "No money.",
            },
            Rejected,
            "insufficient_funds",
        ),
        (402, {"type": "card_error", "code": "expired_card"}, Rejected, "expired_card"),
        (402, {"type": "card_error"}, Rejected, "card_declined"),
        (
            409,
            {"type": "idempotency_error", "code": "idempotency_key_in_use"},
            Unknown,
            "idempotency_key_in_use",
        ),
        (400, {"type": "idempotency_error"}, Rejected, "http_400"),
        (400, {"type": "idempotency_error", "code": "idempotency_key_reused"}, Rejected,
         "idempotency_key_reused"),
        (400, {"type": "invalid_request_error", "code": "amount_too_large"}, Rejected,
         "amount_too_large"),
        (401, {"type": "invalid_request_error", "message": "No key."}, Rejected, "http_401"),
        (400, "not even an object", Unknown, "unexpected_answer"),
    ],
)  # fmt: skip
def test_payment_error_by_status_and_type(status, error, kind, code):
    fault = Payment().refusal(status, {"error": error})
    assert type(fault) is kind
    assert fault.code == code
    reused = kind is Rejected and error.get("type") == "idempotency_error"
    assert getattr(fault, "in_doubt", False) == reused  # the key may have an effect


def test_conflict_at_a_partner_by_code():
    busy = {"error": {"code": "key_in_use", "message": "Wait."}}
    assert type(Inventory().refusal(409, busy)) is Unknown
    assert type(Inventory().refusal(409, {"error": {"message": "Conflict."}})) is Unknown
    assert type(Inventory().refusal(409, {"error": {"code": "out_of_stock"}})) is Rejected


def test_shipping_and_mail_results(monkeypatch):
    wire = Wire(monkeypatch, Shipping, {"id": "shp_1", "tracking": "TRK1", "status": "booked"})
    assert wire.ask("book", {"order": "o"}) == {"id": "shp_1", "tracking": "TRK1"}
    wire = Wire(monkeypatch, Notification, {"id": "msg_1", "status": "accepted"})
    assert wire.ask("send", {"order": "o", "to": "a@b.c"}) == {"id": "msg_1"}


def test_shipper_is_sent_an_address_and_not_when_it_changed(monkeypatch):
    wire = Wire(monkeypatch, Shipping, {"id": "shp_1", "tracking": "TRK1"})
    known = {"order": "o", "reservation": "rsv_1", "address": {"name": "Ada"}}
    wire.ask("book", {**known, "address_changed": "2026-11-29T12:00:00+00:00"})
    wire.ask("book", known)  # of a task that the former release made
    assert wire.sent == [("/shipping/shipments", known)] * 2


def test_credentials_are_read_when_a_connection_opens(settings):
    settings.PAYMENT_SECRET_KEY = "sk_test_other"
    assert Payment().headers() == {"Authorization": "Bearer sk_test_other"}


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [("failed", Rejected, "refund_failed"), ("requires_action", Unknown, "unexpected_status")],
)
def test_refund_that_failed_or_needs_action(monkeypatch, status, kind, code):
    wire = Wire(monkeypatch, Payment, {"id": "re_1", "status": status})
    with pytest.raises(kind) as caught:
        wire.ask("refund", {"payment": "pi_1"})
    assert caught.value.code == code


def test_refund_pending_at_the_bank(monkeypatch):
    wire = Wire(monkeypatch, Payment, {"id": "re_1", "status": "pending"})
    assert wire.ask("refund", {"payment": "pi_1"}) == {"id": "re_1", "status": "pending"}
    assert wire.sent == [("/v1/refunds", {"payment_intent": "pi_1"})]


AUTHORIZE = {"order": "o", "amount": 950, "currency": "EUR", "payment_method": "pm_card_visa"}
HELD = {"id": "pi_1", "status": "requires_capture", "amount": 950, "currency": "eur",
        "amount_received": 0, "metadata": {"order": "o"}}  # fmt: skip
TAKEN = {**HELD, "status": "succeeded", "amount_received": 950}
CAPTURE, OF_PAYMENT = {"payment": "pi_1", "amount": 950}, {"payment": "pi_1"}


@pytest.mark.parametrize(
    ("action", "payload", "stored", "shown"),
    [
        ("authorize", AUTHORIZE, HELD, True),
        ("authorize", AUTHORIZE, TAKEN, True),
        ("authorize", AUTHORIZE, None, False),
        ("authorize", AUTHORIZE, {**HELD, "amount": 1}, False),
        ("authorize", AUTHORIZE, {**HELD, "currency": "jpy"}, False),
        ("authorize", AUTHORIZE, {**HELD, "status": "canceled"}, False),
        ("authorize", AUTHORIZE, {**HELD, "metadata": {"order": "another"}}, False),
        ("authorize", AUTHORIZE, {**HELD, "metadata": {}}, None),  # made in the provider's pages
        ("capture", CAPTURE, TAKEN, True),
        ("capture", CAPTURE, HELD, False),
        ("capture", CAPTURE, {**TAKEN, "amount_received": 1}, False),
        ("void", OF_PAYMENT, {**HELD, "status": "canceled"}, True),
        ("void", OF_PAYMENT, HELD, False),
        ("void", OF_PAYMENT, TAKEN, None),  # it may be refunded
        ("refund", OF_PAYMENT, TAKEN, None),
    ],
)
def test_payment_by_hand_is_looked_up(monkeypatch, action, payload, stored, shown):
    asked = []

    async def get(_self, _call, path, *, expect):
        asked.append((path, sorted(expect)))
        return stored

    monkeypatch.setattr(Payment, "get", get)
    call = Call(action=action, key="", reference="r", payload=payload, timeout=1.0)
    assert asyncio.run(Payment().look_up(call, {"id": "pi_1", "status": "x"})) is shown
    assert asked == [("/v1/payment_intents/pi_1", ["amount", "currency", "id", "status"])]


def test_id_that_was_typed_stays_one_part_of_the_path(monkeypatch):
    wire = Wire(monkeypatch, Payment, {"id": "pi_1", "status": "succeeded"})
    wire.ask("capture", {"payment": "../customers/x?y", "amount": 950})
    assert wire.sent[0][0] == "/v1/payment_intents/..%2Fcustomers%2Fx%3Fy/capture"


def test_unknown_payment_differs_from_a_wrong_address():
    agent = Payment()
    assert agent.knows_nothing(404, {"error": {"code": "resource_missing"}})
    assert not agent.knows_nothing(404, {})
    assert not agent.knows_nothing(403, {"error": {"code": "resource_missing"}})
