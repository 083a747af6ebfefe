"""What the agents send, and what they make of the answers: checked without a network."""

import asyncio

import pytest

from orchestration.api import Call, Rejected, Transient, Unknown
from orders.agents.inventory import Inventory
from orders.agents.notification import Notification
from orders.agents.payment import Payment
from orders.agents.shipping import Shipping


class Wire:
    """Stands in for an agent's connection: keeps what is sent, gives a fixed answer."""

    def __init__(self, monkeypatch, agent, answer):
        self.agent, self.answer, self.sent = agent(), answer, []
        monkeypatch.setattr(self.agent, "post", self.post)

    async def post(self, call, path, *, body=None, form=None, expect=None):
        self.sent.append((path, form if body is None else body))
        return self.answer

    def ask(self, action, payload):
        call = Call(key="k", reference="r", payload=payload, timeout=1.0)
        return asyncio.run(getattr(self.agent, action)(call))


def test_inventory_hears_what_and_how_much(monkeypatch):
    wire = Wire(monkeypatch, Inventory, {"id": "rsv_1", "status": "reserved"})
    line = {"sku": "a", "name": "Coffee", "unit_price": 950, "quantity": 2}
    assert wire.ask("reserve", {"order": "o", "lines": [line]}) == {"id": "rsv_1"}
    body = {"order": "o", "lines": [{"sku": "a", "quantity": 2}]}
    assert wire.sent == [("/inventory/reservations", body)]


def test_payment_is_held_first(monkeypatch):
    wire = Wire(monkeypatch, Payment, {"id": "pi_1", "status": "requires_capture"})
    wanted = {"order": "o", "amount": 950, "currency": "EUR", "payment_method": "pm_card_visa"}
    assert wire.ask("authorize", wanted) == {"id": "pi_1", "status": "requires_capture"}
    path, form = wire.sent[0]
    assert path == "/v1/payment_intents"
    assert form == {
        "amount": "950",
        "currency": "eur",
        "payment_method": "pm_card_visa",
        "payment_method_types[]": "card",
        "capture_method": "manual",
        "confirm": "true",
        "error_on_requires_action": "true",
        "metadata[order]": "o",
    }


def test_and_taken_later(monkeypatch):
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
def test_a_payment_in_an_unexpected_state_keeps_its_key(monkeypatch, action, payload):
    wire = Wire(monkeypatch, Payment, {"id": "pi_1", "status": "requires_action"})
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
            Transient,
            "idempotency_key_in_use",
        ),
        (400, {"type": "idempotency_error"}, Rejected, "http_400"),
        (400, {"type": "invalid_request_error", "code": "amount_too_large"}, Rejected,
         "amount_too_large"),
        (401, {"type": "invalid_request_error", "message": "No key."}, Rejected, "http_401"),
        (400, "not even an object", Rejected, "http_400"),
    ],
)  # fmt: skip
def test_payment_errors(status, error, kind, code):
    fault = Payment().refusal(status, {"error": error})
    assert type(fault) is kind
    assert fault.code == code


def test_another_partner_that_is_still_busy_with_the_same_key():
    busy = {"error": {"code": "key_in_use", "message": "Wait."}}
    assert type(Inventory().refusal(409, busy)) is Transient
    assert type(Inventory().refusal(409, {"error": {"code": "out_of_stock"}})) is Rejected


def test_shipping_and_mail_get_what_the_workflow_gives_them(monkeypatch):
    wire = Wire(monkeypatch, Shipping, {"id": "shp_1", "tracking": "TRK1", "status": "booked"})
    assert wire.ask("book", {"order": "o"}) == {"id": "shp_1", "tracking": "TRK1"}
    wire = Wire(monkeypatch, Notification, {"id": "msg_1", "status": "accepted"})
    assert wire.ask("send", {"order": "o", "to": "a@b.c"}) == {"id": "msg_1"}


def test_credentials_are_read_when_a_connection_opens(settings):
    settings.PAYMENT_SECRET_KEY = "sk_test_other"
    assert Payment().headers() == {"Authorization": "Bearer sk_test_other"}
