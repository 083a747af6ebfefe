"""What the agents send, and what they make of the answers: of a fixed one, or of a real sandbox."""

import asyncio
import time
from uuid import uuid4

import pytest
from jsonschema import Draft202012Validator

from orchestration import registry
from orchestration.api import Call, Rejected, Unknown
from orchestration.messages import Request
from orders.agents.inventory import Inventory
from orders.agents.notification import Notification
from orders.agents.payment import Payment
from orders.agents.shipping import Shipping
from orders.message import WORKFLOW
from tests.unit.test_sandbox_kit import served


class Wire:
    """Stands in for an agent's connection: keeps what is sent, gives a fixed answer."""

    def __init__(self, monkeypatch, agent, answer):
        self.agent, self.answer, self.sent = agent(), answer, []
        monkeypatch.setattr(self.agent, "post", self.post)

    async def post(self, call, path, *, body=None, form=None, expect=None):
        self.sent.append((path, form if body is None else body))
        return self.answer

    def ask(self, action, payload):
        call = Call(action=action, key="k", reference="r", payload=payload, timeout=1.0)
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
def test_payment_errors(status, error, kind, code):
    fault = Payment().refusal(status, {"error": error})
    assert type(fault) is kind
    assert fault.code == code
    reused = kind is Rejected and error.get("type") == "idempotency_error"
    assert getattr(fault, "in_doubt", False) == reused  # something stands under the key


def test_another_partner_that_is_still_busy_with_the_same_key():
    busy = {"error": {"code": "key_in_use", "message": "Wait."}}
    assert type(Inventory().refusal(409, busy)) is Unknown
    assert type(Inventory().refusal(409, {"error": {"message": "Conflict."}})) is Unknown
    assert type(Inventory().refusal(409, {"error": {"code": "out_of_stock"}})) is Rejected


def test_shipping_and_mail_get_what_the_workflow_gives_them(monkeypatch):
    wire = Wire(monkeypatch, Shipping, {"id": "shp_1", "tracking": "TRK1", "status": "booked"})
    assert wire.ask("book", {"order": "o"}) == {"id": "shp_1", "tracking": "TRK1"}
    wire = Wire(monkeypatch, Notification, {"id": "msg_1", "status": "accepted"})
    assert wire.ask("send", {"order": "o", "to": "a@b.c"}) == {"id": "msg_1"}


def test_credentials_are_read_when_a_connection_opens(settings):
    settings.PAYMENT_SECRET_KEY = "sk_test_other"
    assert Payment().headers() == {"Authorization": "Bearer sk_test_other"}


# --- against a real sandbox: doing, undoing, asking

LINES = [{"sku": "mug", "name": "Mug", "unit_price": 950, "quantity": 2}]
ADDRESS = {"name": "A", "street": "Elm 1", "postcode": "1", "city": "B", "country": "DE"}
CHARGE = {"order": "o-1", "amount": 1900, "currency": "EUR", "payment_method": "pm_card_visa"}
MAIL = {"order": "o-1", "to": "a@b.example", "subject": "Thanks", "text": "It is on its way."}
AGENTS = {agent.name: agent for agent in (Inventory, Payment, Shipping, Notification)}


class Shop:
    """The agents of one order, each call as an attempt of its own, held against the schemas."""

    def __init__(self, client):
        self.client = client

    async def do(self, agent, action, payload, *, key="", mode="do", tries=1, **others):
        declared = AGENTS[agent].actions()[action]
        Draft202012Validator(declared.accepts).validate(payload)
        one = AGENTS[agent]("agent-1")
        one.base_url = str(self.client.session._base_url).rstrip("/")
        request = Request(
            step=1,
            task=str(uuid4()),
            name="step",
            attempt=1,
            action=action,
            key=key or uuid4().hex,
            reference="o-1",
            complete_by=time.time() + 5,
            call_timeout=0.5,
            tries=tries,
            payload=payload,
            mode=mode,
            **others,
        )
        try:
            reply = await one.answer(request)
        finally:
            await one.close()
        if reply.outcome == "done":
            Draft202012Validator(declared.returns).validate(reply.result)
        return reply

    async def done(self, *args, **others):
        reply = await self.do(*args, **others)
        assert reply.outcome == "done", reply
        return reply.result

    async def reserved(self, key="k-r"):
        await self.client.stocked()
        order = {"order": "o-1", "lines": LINES}
        return (await self.done("inventory", "reserve", order, key=key))["id"]

    async def booked(self, key="k-s"):
        wanted = {"order": "o-1", "reservation": await self.reserved(), "address": ADDRESS}
        return await self.done("shipping", "book", wanted, key=key)

    async def authorized(self, key="k-p"):
        return (await self.done("payment", "authorize", CHARGE, key=key))["id"]

    async def captured(self, key="k-c"):
        payment = await self.authorized()
        await self.done("payment", "capture", {"payment": payment, "amount": 1900}, key=key)
        return payment

    async def totals(self):
        return (await self.client.get("/ledger/summary"))["o-1"]


@served
async def test_what_was_set_aside_is_put_back_once(client):
    shop = Shop(client)
    await shop.reserved()
    undo = {"key": "k-r"}
    assert await shop.done("inventory", "release", undo, key="u-r") == {"effect": "release"}
    assert await shop.done("inventory", "release", undo, key="u-r") == {"effect": "release"}
    assert await shop.done("inventory", "release", undo) == {"effect": "none"}
    stock = await client.stock()
    assert (stock["on_hand"], stock["reserved"]) == (10, 0)


@served
async def test_an_undo_of_what_never_came_has_it_refused_when_it_comes(client):
    shop = Shop(client)
    await client.stocked()
    released = await shop.done("inventory", "release", {"key": "k-r"})
    assert released == {"effect": "none"}
    late = await shop.do("inventory", "reserve", {"order": "o-1", "lines": LINES}, key="k-r")
    assert (late.outcome, late.code) == ("rejected", "already_undone")
    assert (await client.stock())["on_hand"] == 10


@pytest.mark.parametrize("agent", ["inventory", "payment"])
@served
async def test_under_a_key_that_was_used_for_something_else_may_be_an_effect(client, agent):
    shop = Shop(client)
    await client.stocked()
    first, other = {
        "inventory": ({"order": "o-1", "lines": LINES}, {"order": "o-2", "lines": LINES}),
        "payment": (CHARGE, {**CHARGE, "amount": 1}),
    }[agent]
    act = {"inventory": "reserve", "payment": "authorize"}[agent]
    await shop.done(agent, act, other, key="k")
    reply = await shop.do(agent, act, first, key="k", in_doubt=False)
    assert (reply.outcome, reply.in_doubt) == ("rejected", True)


@served
async def test_goods_that_are_shipped_are_not_put_back(client):
    shop = Shop(client)
    await shop.booked()
    reply = await shop.do("inventory", "release", {"key": "k-r"}, key="u-r")
    assert (reply.outcome, reply.code) == ("rejected", "reservation_shipped")
    assert await shop.done("shipping", "cancel", {"key": "k-s"}) == {"effect": "cancel"}
    # the shipper's refusal was not for good: the same key will do
    assert await shop.done("inventory", "release", {"key": "k-r"}, key="u-r")


@served
async def test_a_shipment_is_cancelled_once(client):
    shop = Shop(client)
    await shop.booked()
    for effect in ("cancel", "none"):
        assert await shop.done("shipping", "cancel", {"key": "k-s"}) == {"effect": effect}
    assert (await shop.totals())["shipments_cancelled"] == 1


@served
async def test_a_parcel_that_was_handed_over_is_not_cancelled(client):
    shop = Shop(client)
    await shop.booked()
    await client.faults(
        {"partner": "shipping", "action": "undo", "fault": "reject", "status": 409,
         "code": "handed_over"}
    )  # fmt: skip
    reply = await shop.do("shipping", "cancel", {"key": "k-s"})
    assert (reply.outcome, reply.code) == ("rejected", "handed_over")


@served
async def test_what_is_held_is_let_go(client):
    shop = Shop(client)
    payment = await shop.authorized()
    for _ in range(2):
        result = await shop.done("payment", "void", {"payment": payment}, key="u-p")
        assert result == {"id": payment, "status": "canceled"}
    again = await shop.done("payment", "void", {"payment": payment}, key="u-other")
    assert again == {"id": payment, "status": "canceled"}
    totals = await shop.totals()
    assert (totals["cancelled"], totals["refunded"]) == (1900, 0)


@served
async def test_letting_go_of_what_was_taken_gives_it_back_once(client):
    shop = Shop(client)
    payment = await shop.captured()
    first = await shop.done("payment", "void", {"payment": payment}, key="u-p")
    again = await shop.done("payment", "void", {"payment": payment}, key="u-p")
    assert first == again
    assert first["status"] == "succeeded"
    assert (await shop.totals())["refunded"] == 1900


@served
async def test_letting_go_of_what_was_taken_and_given_back_changes_nothing(client):
    shop = Shop(client)
    payment = await shop.captured()
    refund = await shop.done("payment", "refund", {"payment": payment}, key="u-c")
    assert refund["id"].startswith("re_")
    for _ in range(2):
        result = await shop.done("payment", "void", {"payment": payment}, key="u-p")
        assert result == {"id": payment, "status": "refunded"}
    totals = await shop.totals()
    assert (totals["captured"], totals["refunded"], totals["cancelled"]) == (1900, 1900, 0)


@served
async def test_a_refund_gives_back_what_is_left(client):
    shop = Shop(client)
    payment = await shop.captured()
    await client.made("/v1/refunds", {"payment_intent": payment, "amount": "400"}, "by-hand")
    await shop.done("payment", "refund", {"payment": payment}, key="u-c")
    await shop.done("payment", "refund", {"payment": payment}, key="u-c")
    assert (await shop.totals())["refunded"] == 1900
    done = await shop.done("payment", "refund", {"payment": payment}, key="u-again")
    assert done == {"id": payment, "status": "refunded"}


@served
async def test_what_was_never_taken_is_not_given_back(client):
    shop = Shop(client)
    payment = await shop.authorized()
    reply = await shop.do("payment", "refund", {"payment": payment})
    assert (reply.outcome, reply.code) == ("rejected", "payment_intent_unexpected_state")


@pytest.mark.parametrize("fault", ["timeout_after_effect", "reset_after_effect", "wrong_json"])
@pytest.mark.parametrize("action", ["cancel", "refund", "read"])
def test_a_lost_answer_does_not_undo_twice(tmp_path, action, fault):
    @served
    async def run(client):
        shop = Shop(client)
        held = action == "cancel"
        payment = await (shop.authorized() if held else shop.captured())
        await client.faults(
            {"partner": "payment", "action": action, "fault": fault, "times": 2,
             "seconds": 2} if "timeout" in fault
            else {"partner": "payment", "action": action, "fault": fault, "times": 2}
        )  # fmt: skip
        outcomes = []
        while not outcomes or (outcomes[-1] != "done" and len(outcomes) < 4):
            reply = await shop.do("payment", "void", {"payment": payment}, key="u-p")
            outcomes.append(reply.outcome)
        assert outcomes[-1] == "done"
        assert set(outcomes[:-1]) <= {"unknown"}
        totals = await shop.totals()
        assert (totals["cancelled"], totals["refunded"]) == ((1900, 0) if held else (0, 1900))

    run(tmp_path=tmp_path)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [("failed", Rejected, "refund_failed"), ("requires_action", Unknown, "unexpected_status")],
)
def test_a_refund_that_is_not_made(monkeypatch, status, kind, code):
    wire = Wire(monkeypatch, Payment, {"id": "re_1", "status": status})
    with pytest.raises(kind) as caught:
        wire.ask("refund", {"payment": "pi_1"})
    assert caught.value.code == code


def test_a_refund_may_take_the_bank_some_days(monkeypatch):
    wire = Wire(monkeypatch, Payment, {"id": "re_1", "status": "pending"})
    assert wire.ask("refund", {"payment": "pi_1"}) == {"id": "re_1", "status": "pending"}
    assert wire.sent == [("/v1/refunds", {"payment_intent": "pi_1"})]


QUESTIONS = {
    # agent and action, what it is asked, the partner
    "inventory": ("reserve", {"order": "o-1", "lines": LINES}, "inventory"),
    "notification": ("send", MAIL, "mail"),
}


@pytest.mark.parametrize("mode", ["settle", "ask"])
@pytest.mark.parametrize("agent", QUESTIONS)
@served
async def test_partners_are_asked_what_came_of_a_key(client, agent, mode):
    shop = Shop(client)
    await client.stocked()
    action, payload, partner = QUESTIONS[agent]
    assert (await shop.do(agent, action, payload, key="k/1", mode=mode)).outcome == "absent"
    made = await shop.done(agent, action, payload, key="k/1")
    assert await shop.done(agent, action, payload, key="k/1", mode=mode) == made
    (entry,) = [one for one in await client.entries() if one["key"] == "k/1"]
    assert (entry["requests"], entry["partner"]) == (1, partner)

    await client.faults({"partner": partner, "fault": "reject", "code": "no_way", "times": 1})
    await shop.do(agent, action, payload, key="k/2")
    refused = await shop.do(agent, action, payload, key="k/2", mode=mode)
    assert (refused.outcome, refused.code) == ("rejected", "no_way")


@served
async def test_undoing_can_be_asked_about_too(client):
    shop = Shop(client)
    booked = await shop.booked()
    wanted = {"order": "o-1", "reservation": "rsv", "address": ADDRESS}
    assert await shop.done("shipping", "book", wanted, key="k-s", mode="settle") == booked
    undo = {"key": "k-s"}
    assert (await shop.do("shipping", "cancel", undo, key="u-s", mode="ask")).outcome == "absent"
    await shop.done("shipping", "cancel", undo, key="u-s")
    asked = await shop.done("shipping", "cancel", undo, key="u-s", mode="ask")
    assert asked == {"effect": "cancel"}


@served
async def test_a_key_that_is_still_at_work_is_asked_about_later(client):
    shop = Shop(client)
    client.sandbox.script.latency["mail"] = 0.3
    sending = asyncio.create_task(shop.do("notification", "send", MAIL, key="k-1"))
    while (await client.call("GET", "/keys/k-1")).code != "key_in_use":
        assert not sending.done()
    client.sandbox.script.latency["mail"] = 0.0
    asked = await shop.do("notification", "send", MAIL, key="k-1", mode="settle")
    assert (asked.outcome, asked.code) == ("unknown", "key_in_use")
    assert (await sending).outcome == "done"


@served
async def test_a_payment_in_doubt_is_repeated_while_its_key_is_known(client):
    shop = Shop(client)
    payment = await shop.authorized()
    settled = await shop.done("payment", "authorize", CHARGE, key="k-p", mode="settle")
    assert settled["id"] == payment
    forgotten = await shop.do("payment", "authorize", CHARGE, key="k-p", mode="ask")
    assert (forgotten.outcome, forgotten.code) == ("unknown", "key_forgotten")
    assert (await shop.totals())["authorized"] == 1900


@served
async def test_a_whole_order_is_undone_in_reverse(client):
    shop = Shop(client)
    await shop.booked()
    payment = await shop.captured()
    await shop.done("payment", "refund", {"payment": payment})
    await shop.done("shipping", "cancel", {"key": "k-s"})
    await shop.done("payment", "void", {"payment": payment})
    await shop.done("inventory", "release", {"key": "k-r"})
    totals = await shop.totals()
    assert totals["captured"] - totals["refunded"] == 0
    assert (totals["releases"], totals["shipments_cancelled"]) == (1, 1)
    assert (await client.stock())["on_hand"] == 10


def test_every_action_of_the_shop_has_schemas_that_are_sound():
    for step in registry.workflows[WORKFLOW].steps:
        for name in {step.action, step.undo} & AGENTS[step.agent].actions().keys():
            declared = AGENTS[step.agent].actions()[name]
            for schema in (declared.accepts, declared.returns):
                Draft202012Validator.check_schema(schema)
    problems = Draft202012Validator(Payment.actions()["authorize"].accepts).iter_errors(
        {**CHARGE, "amount": "lots", "currency": "euro"}
    )
    assert {one.absolute_path[0] for one in problems} == {"amount", "currency"}
